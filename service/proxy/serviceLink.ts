// The connection of a proxy of its own to the service: it follows the feed, reports which Machines have requests, and asks for the start
// of Machines. While the service cannot be reached, nothing of what is known is forgotten, and nothing is started.
import { randomBytes } from "node:crypto";
import { Agent, request as sendHttp, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent as SecureAgent, request as sendHttps } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { configOf, findMachine } from "../lifecycle/machines.ts";
import { challengeFolder } from "../runtime/certificateIssuer.ts";
import { withResolvers } from "../withResolvers.ts";
import { whenIdle } from "./autostop.ts";
import type { FeedLine } from "./feedLines.ts";
import { answersPath, feedPath, mostCounts, reportPath, startPath } from "./feedPaths.ts";
import type { Followed } from "./followed.ts";
import { isAsleep, type Power } from "./power.ts";
import type { Report } from "./replicas.ts";
import type { Targets } from "./targets.ts";
import type { RouteCounts, Traffic } from "./traffic.ts";

/** Where the service is. */
export interface ServicePlace {
  readonly url: string;
  /** Reads the token, which may be replaced while the proxy runs. */
  readonly token: () => string;
}

// ASSUMED: a proxy tries again after a tenth of a second to reach the service, then after twice the pause each time, at most two seconds.
const againMs = 100;
const mostAgainMs = 2000;
/** The service says something every five seconds. */
const silentMs = 15_000;
const connectMs = 5000;
// ASSUMED: which Machines have requests is reported every second.
const reportMs = 1000;
// ASSUMED: a request to start a Machine is repeated for five seconds. A service that is started again, or another member, answers by then.
const startForMs = 5000;
/** Lines that are taken over at once. The first ones may be very many. */
const mostLines = 1000;

/** The service has refused a request. */
class Refused extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(`the service answered ${status}: ${text}`);
    this.status = status;
  }
}

/** Answers that the service has not confirmed yet. */
interface Unreported {
  readonly number: number;
  readonly answers: readonly RouteCounts[];
}

/** Follows the service, and acts through it. */
export class ServiceLink {
  readonly #place: ServicePlace;
  readonly #followed: Followed;
  readonly #replica = randomBytes(8).toString("hex");
  readonly #agent: Agent;
  readonly #closed = new AbortController();
  readonly #ready = withResolvers();
  #targets: Targets | undefined;
  #run = "";
  #at = -1;
  /** Since when the service cannot be reached; undefined while it can. */
  #awaySince: number | undefined = performance.now();
  #problem: string | undefined;
  readonly #starting = new Set<string>();
  /** Machines that may be stopped when they are idle, and have had a request since the last report. */
  readonly #used = new Set<string>();
  /** Machines whose last request will be reported. */
  readonly #draining = new Set<string>();
  #reportedAt = Number.NEGATIVE_INFINITY;
  #isReporting = false;
  #isDue = false;
  #reportTimer: NodeJS.Timeout | undefined;
  #unreported: readonly Unreported[] = [];
  /** The number of the last ones. */
  #lastAnswers = 0;

  constructor(place: ServicePlace, followed: Followed) {
    this.#place = place;
    this.#followed = followed;
    this.#agent = new (place.url.startsWith("https:") ? SecureAgent : Agent)({ keepAlive: true, maxSockets: 16 });
  }

  /** Whether the service can be reached. */
  get isConnected(): boolean {
    return this.#awaySince === undefined;
  }

  /** The number of the last change that it knows. */
  get at(): number {
    return this.#at;
  }

  /** Resolves once it knows what the service has. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** What starts Machines, and knows which have requests. */
  powerFor(targets: Targets): Power {
    this.#targets = targets;
    return {
      wake: (machine) => this.#wake(machine),
      loaded: (machine) => this.#loaded(machine),
      changed: () => {},
      close: () => this.close(),
    };
  }

  /** The answer of the service to the token of a certificate authority; undefined if it has none, or cannot be reached. */
  async answerOf(token: string): Promise<string | undefined> {
    if (!/^[\w-]{1,200}$/.test(token)) return undefined;
    try {
      let text = "";
      const response = await this.#send("GET", challengeFolder + token, undefined, connectMs);
      for await (const part of response.setEncoding("utf8") as AsyncIterable<string>) text += part;
      return text;
    } catch {
      return undefined;
    }
  }

  /** Reports the answers since the last report. Those that the service does not confirm are reported again the next time. */
  async reportAnswers(traffic: Traffic): Promise<void> {
    if (this.#unreported.length === 0) {
      const counts = traffic.takeCounts();
      const parts = Array.from({ length: Math.ceil(counts.length / mostCounts) }, (_, i) =>
        counts.slice(i * mostCounts, (i + 1) * mostCounts),
      );
      this.#unreported = parts.map((answers) => ({ number: ++this.#lastAnswers, answers }));
    }
    for (const part of this.#unreported) {
      try {
        await this.#ask(answersPath, { replica: this.#replica, ...part });
      } catch (error) {
        // A service that cannot read them, as an older one, would refuse them each time.
        if (!(error instanceof Refused) || error.status === 409) return;
      }
      this.#unreported = this.#unreported.filter((one) => one !== part);
    }
  }

  /** Follows the service until it is closed. */
  begin(): void {
    void this.#followAlways();
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#reportTimer);
    this.#agent.destroy();
  }

  async #followAlways(): Promise<void> {
    const { log } = this.#followed.context;
    for (let pause = againMs; !this.#closed.signal.aborted; pause = Math.min(2 * pause, mostAgainMs)) {
      const at = this.#at;
      const problem = await this.#follow().then(
        () => "the service has ended the connection",
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      if (this.#closed.signal.aborted) return;
      this.#awaySince ??= performance.now();
      if (this.#at > at) pause = againMs;
      // Once, not with each attempt.
      if (problem !== this.#problem)
        log.warn({ reason: problem }, "the service cannot be followed; requests are routed as before");
      this.#problem = problem;
      await sleep(pause, undefined, { signal: this.#closed.signal }).catch(() => {});
    }
  }

  /** Follows until the connection ends. */
  async #follow(): Promise<void> {
    const since = this.#at < 0 ? "" : `&run=${encodeURIComponent(this.#run)}&at=${this.#at}`;
    const response = await this.#send("GET", `${feedPath}?replica=${this.#replica}${since}`, undefined, silentMs);
    const { log } = this.#followed.context;
    this.#awaySince = undefined;
    this.#problem = undefined;
    log.info({ service: this.#place.url }, "follows the service");
    let lines: FeedLine[] = [];
    let rest = "";
    for await (const part of response.setEncoding("utf8") as AsyncIterable<string>) {
      const texts = (rest + part).split("\n");
      rest = texts.pop() ?? "";
      for (const text of texts) {
        const line = JSON.parse(text) as FeedLine;
        if ("begin" in line) this.#begun(line.begin);
        else if (!("at" in line)) lines.push(line);
        if ("at" in line || lines.length >= mostLines) {
          await this.#followed.apply(lines);
          lines = [];
        }
        if ("at" in line) await this.#reached(line.at);
      }
    }
  }

  #begun({ run, isWhole }: { readonly run: string; readonly isWhole: boolean }): void {
    if (!isWhole) return;
    this.#run = run;
    this.#at = -1;
    this.#followed.begin();
  }

  /** It knows everything up to a number. */
  async #reached(at: number): Promise<void> {
    await this.#followed.complete();
    this.#at = at;
    this.#ready.resolve();
    // The service may wait for it before it ends a Machine.
    this.#reportSoon(0);
  }

  #wake(id: string): boolean {
    if (this.#starting.has(id)) return true;
    if (this.#awaySince !== undefined && performance.now() - this.#awaySince > startForMs) return false;
    this.#starting.add(id);
    void this.#start(id).finally(() => {
      this.#starting.delete(id);
      // Those who wait for it do so no longer, if it was in vain.
      this.#targets?.changed();
    });
    return true;
  }

  async #start(id: string): Promise<void> {
    const until = performance.now() + startForMs;
    const isWanted = (): boolean => {
      const machine = findMachine(this.#followed.context, id);
      return machine !== undefined && isAsleep(machine) && performance.now() < until && !this.#closed.signal.aborted;
    };
    for (let isAsked = false; isWanted(); await sleep(againMs)) {
      if (isAsked) continue;
      try {
        await this.#ask(startPath(id), {});
        isAsked = true;
      } catch (error) {
        if (!(error instanceof Refused)) continue;
        this.#followed.context.log.error({ err: error, machine: id }, "a Machine could not be started");
        return;
      }
    }
  }

  #loaded(id: string): void {
    const { context } = this.#followed;
    const machine = findMachine(context, id);
    if (!machine || whenIdle(configOf(context, machine)) === undefined) return;
    this.#used.add(id);
    this.#reportSoon(Math.max(0, this.#reportedAt + reportMs - performance.now()));
  }

  #reportSoon(ms: number): void {
    if (ms === 0) {
      if (this.#isReporting) this.#isDue = true;
      else void this.#report();
      return;
    }
    this.#reportTimer ??= setTimeout(() => {
      this.#reportTimer = undefined;
      this.#reportSoon(0);
    }, ms).unref();
  }

  async #report(): Promise<void> {
    this.#isReporting = true;
    do {
      this.#isDue = false;
      this.#reportedAt = performance.now();
      const used = [...this.#used];
      try {
        await this.#ask(reportPath, { replica: this.#replica, ...this.#reportNow() });
        for (const id of used) if (!this.#targets || this.#targets.openOf(id) === 0) this.#used.delete(id);
        // That they are idle again is reported, too.
        if (used.length > 0) this.#reportSoon(reportMs);
      } catch {
        // It is repeated when the service is followed again.
        if (this.isConnected) this.#reportSoon(reportMs);
      }
    } while (this.#isDue && !this.#closed.signal.aborted);
    this.#isReporting = false;
  }

  #reportNow(): Report {
    const { context } = this.#followed;
    const targets = this.#targets;
    const draining = [...(targets?.withRequests() ?? [])].filter((id) => {
      const machine = findMachine(context, id);
      return machine?.state !== "started" || machine.cordoned === 1;
    });
    for (const id of draining) this.#reportEnd(id);
    return {
      ...{ run: this.#run, at: this.#at, draining },
      busy: [...this.#used],
      awaited: [...(targets?.awaited() ?? [])],
    };
  }

  /** Reports that a Machine which gets no more requests has had its last one. */
  #reportEnd(id: string): void {
    if (this.#draining.has(id)) return;
    this.#draining.add(id);
    const report = async (): Promise<void> => {
      await this.#targets?.drained(id);
      this.#draining.delete(id);
      this.#reportSoon(0);
    };
    void report();
  }

  async #ask(path: string, body: object): Promise<void> {
    const response = await this.#send("POST", path, JSON.stringify(body), connectMs);
    for await (const _ of response);
  }

  /** Sends a request; a silence of that time ends it. */
  #send(method: string, path: string, body: string | undefined, silence: number): Promise<IncomingMessage> {
    const { url, token } = this.#place;
    return new Promise((resolve, reject) => {
      const send: (url: string, options: RequestOptions) => ClientRequest = url.startsWith("https:")
        ? sendHttps
        : sendHttp;
      const headers = {
        authorization: `Bearer ${token()}`,
        ...(body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
      };
      // The feed has a connection of its own, which no other request waits for.
      const agent = body === undefined ? false : this.#agent;
      const sent = send(new URL(path, url).href, { method, headers, agent, signal: this.#closed.signal });
      sent.setTimeout(silence, () => sent.destroy(new Error("the service does not answer")));
      sent.once("error", reject);
      sent.once("response", (response) => {
        const { statusCode: status = 0 } = response;
        if (status < 300) return resolve(response);
        void textOf(response).then((text) => reject(new Refused(status, text)), reject);
      });
      sent.end(body);
    });
  }
}

/** The beginning of an answer, for people. */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of response.setEncoding("utf8") as AsyncIterable<string>) if (text.length < 1000) text += part;
  try {
    return String((JSON.parse(text) as { readonly error?: unknown }).error);
  } catch {
    return text.slice(0, 200);
  }
}
