// Runs the service as one of several members that share a PostgreSQL database: it leads, or it follows and forwards.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Admin } from "../http/admin.ts";
import { connectionLimits, listenOnLocalhost } from "../http/connections.ts";
import { bearerToken } from "../http/authenticate.ts";
import { memberMetrics } from "../http/memberMetrics.ts";
import { ProcessMetrics } from "../http/processMetrics.ts";
import { addChangesRoute } from "../http/changesRoute.ts";
import type { MemberKey } from "../http/memberKey.ts";
import { memberKeyOf } from "./commandStore.ts";
import { historyKeeper } from "../history/history.ts";
import { FollowedHistory } from "../history/sharing.ts";
import { answerWith, Front } from "../http/front.ts";
import { positionOf } from "../replication/changes.ts";
import { LeaderLog } from "../replication/leaderLog.ts";
import type { Listed, Log } from "../replication/log.ts";
import { usualTiming, type MemberState } from "../replication/member.ts";
import { keepLog, usualBytes } from "../replication/snapshots.ts";
import { Membership } from "../replication/membership.ts";
import { untilAnswered } from "../replication/untilAnswered.ts";
import { Networks } from "../runtime/networks.ts";
import { createService } from "../service.ts";
import { prepareFolder } from "../store/prepareFolder.ts";
import { storeFile } from "../store/database.ts";
import { requireRestored } from "../store/restoring.ts";
import { clearRunning, lockData, writeRunning, type Held, type Running } from "../store/lock.ts";
import { MemberCopy, NewerEntry, schemaOfCopies, snapshotOf } from "../store/memberCopy.ts";
import { keepToken } from "../store/tokenFile.ts";
import { isOperator, Tokens } from "../store/tokens.ts";
import { version } from "../version.ts";
import { linesOf, type Measured } from "../watch/exposition.ts";
import { withResolvers } from "../withResolvers.ts";
import { beginBackups } from "./backupRoute.ts";
import { listenProblem } from "./listen.ts";
import { PastStores } from "./pastStores.ts";
import { elsewhere, endLeft, followsOnly, isSomewhere, placeBytes, placeOf, readPlace, type Place } from "./place.ts";
import type { Created, Plan } from "./plan.ts";
import { Problem } from "./problem.ts";
import { backlog } from "../runtime/entrance.ts";
import { adminOf, listenForApi, onSignal, runningOf, urlOf, type Listening } from "./running.ts";
import { isPublic, openProxy } from "./reached.ts";
import { joinStore, readStoreKey, requireFreeFolder } from "./sharedStore.ts";

/** Exit code of a process that has lost its leadership: what it accepted last may not have happened. */
const lostLeadership = 4;

// A leader that ends waits this long for another one, if there are other members.
const successorMs = 5000;
// How often a member says where it stands.
const reportMs = 1000;
// One that has not said so for this long does not run.
const seenMs = 3 * reportMs;
// How often it looks whether a snapshot is due.
const keepEveryMs = 10_000;

/** Serves as a member until SIGINT or SIGTERM, or until it loses its leadership. */
export async function serveAsMember(plan: Plan, store: string): Promise<Running> {
  const { folder, options } = plan;
  const fileKey = readStoreKey(options.keyFile);
  requireFreeFolder(prepareFolder(folder));
  requireAdvertised(plan);
  const lock = lockData(folder);
  requireRestored(folder);
  const log = await joinStore(store, fileKey, folder);
  const key = memberKeyOf(folder);
  const place = await placeOf(options, folder);
  const reason = await untilAnswered(() => followsOnly(log, place));
  const member = new MemberProcess(plan, { key, lock, log, place, reason });
  onSignal((signal) => member.stop(signal));
  return member.begin();
}

/** What a member has from its start. */
interface Joined {
  readonly key: MemberKey;
  readonly lock: Held;
  readonly log: Log;
  readonly place: Place;
  /** Why it may only follow; undefined if it may lead. */
  readonly reason: string | undefined;
}

/** This process. */
class MemberProcess {
  readonly #plan: Plan;
  readonly #joined: Joined;
  readonly #copy: MemberCopy;
  readonly #front: Front;
  readonly #settled = withResolvers();
  #url = "";
  /** Sockets that were given; undefined without them. */
  #listening: Listening | undefined;
  #membership: Membership | undefined;
  #created: Created | undefined;
  #admin: Admin | undefined;
  readonly #past: PastStores;
  /** The history that others write; undefined if none is kept. */
  readonly #followed: FollowedHistory | undefined;
  #proxyPorts: Running["proxy"];
  #repeated: readonly NodeJS.Timeout[] = [];
  #measured = { endSeq: 0, logBytes: 0, snapshots: 0, members: {} as Readonly<Record<string, number>> };
  readonly #processMetrics: ProcessMetrics;
  readonly #tokens: Tokens;
  /** Who leads, as the log said last. */
  #said: string | undefined;
  #seq = 0;
  /** Why it may only follow; undefined if it may lead. */
  #reason: string | undefined;
  #exitCode = 0;

  constructor(plan: Plan, joined: Joined) {
    this.#plan = plan;
    this.#joined = joined;
    this.#reason = joined.reason;
    if (joined.reason !== undefined) this.#onlyFollow(joined.reason);
    this.#copy = new MemberCopy(storeFile(plan.folder));
    this.#keepToken();
    this.#tokens = new Tokens(this.#copy);
    this.#processMetrics = new ProcessMetrics(plan.folder);
    const { runtime = "simulated", store: url = "", keyFile = "" } = plan.options;
    const failed = (error: unknown): void => this.#say("no past moment could be written", { err: String(error) });
    this.#past = new PastStores({ ...{ log: joined.log, url, keyFile, failed }, folder: join(plan.folder, "past") });
    this.#followed = followHistory(plan, joined.log, (reason) => this.#say("the history of the members", { reason }));
    this.#front = new Front({
      limits: connectionLimits({}, runtime !== "simulated"),
      tls: plan.tls,
      key: joined.key,
      trusted: plan.reached.trusted && new Networks(plan.reached.trusted),
      answerSelf: (request, response) => this.#answerSelf(request, response),
    });
  }

  /** Listens, and returns once some member leads. */
  async begin(): Promise<Running> {
    const { options, sockets } = this.#plan;
    const { server } = this.#front;
    if (sockets.api.length > 0) this.#listening = await listenForApi(this.#plan, server);
    else await this.#listen();
    this.#url = this.#listening?.url ?? urlOf(this.#plan, (server.address() as AddressInfo).port);
    const { log } = this.#joined;
    const mayLead = this.#reason === undefined;
    const me = { id: randomBytes(8).toString("hex"), address: options.advertise ?? this.#url };
    this.#membership = new Membership({
      ...{ me, mayLead, log, copy: this.#copy, timing: usualTiming },
      now: () => performance.now(),
      ahead: () => Date.now() - performance.now(),
      after: (ms, run) => void setTimeout(run, ms),
      lead: (epoch) => void this.#lead(epoch).catch((error: unknown) => this.#fail(error)),
      drain: () => this.#drain(),
      end: (isLost) => void (isLost ? this.#cut() : this.#end()),
      changed: (state) => this.#changed(state),
      failed: (error) => this.#fail(error),
    });
    const report = setInterval(() => this.#report(me.address), reportMs);
    const notKept = (error: unknown): void => this.#say("no snapshot could be stored", { err: String(error) });
    const keep = setInterval(() => void this.#keep(me.address).catch(notKept), keepEveryMs);
    this.#repeated = [report, keep];
    await this.#settled.promise;
    if (!this.#created) await warmUp();
    return this.#running;
  }

  async #listen(): Promise<void> {
    const { address, options } = this.#plan;
    const { server } = this.#front;
    try {
      server.listen({ host: address.host, port: address.port, backlog });
      await once(server, "listening");
    } catch (error) {
      throw await listenProblem(error, options.listen);
    }
    if (address.host === "localhost") await listenOnLocalhost(server);
  }

  /** Hands over, if it leads, and ends. Sockets that were given keep new connections for the next process. */
  stop(signal: string): void {
    this.#say("closing", { signal });
    clearRunning(this.#plan.folder);
    void this.#drainGiven().finally(() => this.#membership?.stop());
  }

  async #drainGiven(): Promise<void> {
    if (!this.#listening) return;
    this.#listening.stop();
    await this.#front.drain(this.#plan.drainMs);
  }

  async #lead(epoch: number): Promise<void> {
    const { log, lock } = this.#joined;
    const membership = this.#membership as Membership;
    const place = await untilAnswered(async () => this.#placeNow());
    const reason = elsewhere(place, this.#joined.place);
    // Another member was promoted while this one was paused, or could not reach the database.
    if (reason !== undefined) {
      printError(reason);
      this.#exitCode = lostLeadership;
      return membership.stop();
    }
    const { seq } = this.#copy.position;
    this.#seq = seq;
    const passedOn = this.#copy.passOn();
    const leading = {
      ...{ log, epoch },
      pause: () => sleep(usualTiming.retryMs),
      lost: () => membership.lost(),
      unsure: () => membership.unsure,
    };
    const created = await this.#plan.create({
      leading: {
        log: (db) => new LeaderLog(db, schemaOfCopies(), leading),
        lock,
        run: String(epoch),
        serve: (handler) => this.#front.attach(handler),
        idle: () => this.#front.idle(),
        metrics: () => this.#metrics(),
        past: this.#past,
        lost: place.lost,
        history: { history: log, epoch, isFree: this.#followed?.close() ?? Promise.resolve() },
      },
    });
    passedOn();
    if (place.lost) await this.#noteBegun(created, epoch);
    addChangesRoute(created.service.app, created.service.context, this.#joined.key);
    await beginBackups(this.#plan, created.service);
    // Before the first request, because it finds the addresses that Apps can have.
    this.#proxyPorts = await openProxy(this.#plan, created.service);
    await created.service.app.ready();
    this.#admin = await adminOf(this.#plan, created.service);
    this.#created = created;
    this.#front.answer(membership.state.me.address);
    this.#say("leads", { epoch, seq });
    this.#changed(membership.state);
  }

  /** Records that what was lost is created again, so that the next leader does not repeat it. */
  async #noteBegun({ service }: Created, epoch: number): Promise<void> {
    const { log, place } = this.#joined;
    await service.context.store.unsettled;
    this.#say("what was lost is created again here");
    if (!(await untilAnswered(() => log.setPlace(epoch, placeBytes(place))))) this.#membership?.lost();
  }

  /** The place of the Machines now. */
  async #placeNow(): Promise<Place> {
    const { log, place } = this.#joined;
    return readPlace((await log.place()) ?? placeBytes(place));
  }

  /** A member that only follows may lead after it was promoted, and the other way round. */
  async #lookWhere(): Promise<void> {
    if (!isSomewhere(this.#joined.place) || this.#membership?.state.role !== "following") return;
    const reason = elsewhere(await this.#placeNow(), this.#joined.place);
    if (reason === this.#reason) return;
    this.#reason = reason;
    this.#membership.moved(reason === undefined);
    if (reason === undefined) this.#say("may lead from now on");
    else this.#onlyFollow(reason);
  }

  /** Says why it only follows, and ends what still runs here, if another member was promoted. */
  #onlyFollow(reason: string): void {
    printError(reason);
    const { place } = this.#joined;
    const { folder } = this.#plan;
    const end = async (): Promise<void> => (await endLeft(await this.#placeNow(), place, folder)).forEach(printError);
    end().catch((error: unknown) => printError(`what still runs here could not be ended: ${String(error)}`));
  }

  /** Takes note of who leads. */
  #changed({ role, epoch, leader }: MemberState): void {
    if (role === "following") this.#front.follow(leader?.address);
    const isSettled = role === "leading" ? this.#created !== undefined : role === "following" && leader !== undefined;
    const said = `${epoch} ${isSettled}`;
    if (!isSettled || said === this.#said) return;
    this.#said = said;
    if (role === "following") this.#say("follows", { epoch, leader: leader?.address });
    writeRunning(this.#plan.folder, this.#running);
    this.#settled.resolve();
  }

  get #running(): Running {
    const run = String(this.#membership?.state.epoch ?? 0);
    return {
      ...runningOf(this.#plan, this.#url, run, this.#proxyPorts),
      ...(this.#admin ? { admin: this.#admin.url } : {}),
    };
  }

  /** The members that run, as far as the log knows. */
  async #runningMembers(): Promise<readonly Listed[]> {
    return (await this.#joined.log.members()).filter(({ agoMs }) => agoMs < seenMs);
  }

  /** Looks how long the log is, what it has, and which members there are. */
  async #measure(): Promise<void> {
    const { log } = this.#joined;
    const [{ seq: endSeq, size: logBytes, snapshots }, running] = await Promise.all([
      log.extent(),
      this.#runningMembers(),
    ]);
    const members: Record<string, number> = { leader: 0, standby: 0, follower: 0 };
    for (const { role } of running) members[role] = (members[role] ?? 0) + 1;
    this.#measured = { endSeq, logBytes, snapshots: snapshots.length, members };
  }

  #metrics(): readonly Measured[] {
    const { epoch = 0 } = this.#membership?.state ?? {};
    const isLeader = this.#created !== undefined;
    const seq = this.#entry;
    return memberMetrics({ ...this.#measured, isLeader, epoch, seq, replaced: this.#copy.replaced });
  }

  /** Makes a snapshot when one is due. Of the members that follow, the first by address does it, so that the leader need not. */
  async #keep(address: string): Promise<void> {
    const { log } = this.#joined;
    const standbys = (await this.#runningMembers()).filter(({ role }) => role !== "leader");
    const isMine = this.#created ? standbys.length === 0 : standbys[0]?.address === address;
    if (!isMine) return;
    const { folder, keepMs } = this.#plan;
    const make = () => snapshotOf(storeFile(folder));
    const seq = await keepLog(log, make, { everyBytes: usualBytes, keepMs });
    if (seq !== undefined) this.#say("stored a snapshot", { seq });
  }

  /** The last entry that its copy contains. */
  get #entry(): number {
    const { role = "following" } = this.#membership?.state ?? {};
    if (this.#created) this.#seq = positionOf(this.#created.service.context.store.db).seq;
    // Between the two, the copy is closed.
    else if (role !== "leading") this.#seq = this.#copy.position.seq;
    return this.#seq;
  }

  /** Another member may have replaced the first token. */
  #keepToken(): void {
    const { role = "following" } = this.#membership?.state ?? {};
    const store = this.#created?.service.context.store ?? (role === "leading" ? undefined : this.#copy);
    try {
      if (store) keepToken(store, this.#plan.folder);
    } catch (error) {
      this.#say("the first token could not be written", { err: String(error) }); // it is tried again with the next report
    }
  }

  #report(address: string): void {
    this.#keepToken();
    const seq = this.#entry;
    const role = this.#created ? "leader" : this.#reason === undefined ? "standby" : "follower";
    const place = placeBytes(this.#joined.place);
    void this.#joined.log.report({ address, version, role, seq, place }).catch(() => {});
    void this.#lookWhere().catch(() => {});
    void this.#measure().catch(() => {});
  }

  async #drain(): Promise<void> {
    this.#stopRepeating();
    this.#front.leave();
    void this.#admin?.close(); // does not wait for its clients
    const { options, sockets, drainMs, backups } = this.#plan;
    const draining = isPublic(options, sockets) ? this.#created?.service.proxy?.drain(drainMs) : undefined;
    await Promise.all([draining, backups.close()]);
    await this.#created?.service.close();
    await this.#past.close();
  }

  #stopRepeating(): void {
    for (const one of this.#repeated) clearInterval(one);
  }

  /** Ends after the hand-over. */
  async #end(): Promise<void> {
    this.#stopRepeating();
    if (this.#created) await this.#introduceSuccessor();
    await this.#front.end();
    await this.#created?.closeTracing();
    this.#exit(this.#exitCode);
  }

  /** Forwards to the next leader until the other members know it, so that no request is refused. */
  async #introduceSuccessor(): Promise<void> {
    const { log } = this.#joined;
    const members = await this.#runningMembers().catch(() => []);
    if (!members.some(({ role }) => role === "standby")) return;
    const until = performance.now() + successorMs;
    while (performance.now() < until) {
      const found = await log.leadership().catch(() => undefined);
      if (found && found.epoch !== this.#membership?.state.epoch) {
        this.#front.follow(found.leader.address);
        return sleep(3 * usualTiming.lookMs);
      }
      await sleep(usualTiming.lookMs / 4);
    }
  }

  /** Ends without an answer to anyone, because the outcome of the last changes is unknown. */
  #cut(): void {
    this.#front.cut();
    this.#say("has lost its leadership, and ends");
    this.#exit(lostLeadership);
  }

  #fail(error: unknown): void {
    if (error instanceof NewerEntry) return void this.#failTooOld(error);
    printError(error instanceof Error ? error.message : String(error));
    this.#exit(1);
  }

  /** Ends, and says which version it needs: the other members have it. */
  async #failTooOld(entry: NewerEntry): Promise<void> {
    let members: readonly Listed[] = [];
    try {
      members = await this.#joined.log.members();
    } catch {
      // The reason is known without them.
    }
    printError(entry.explain(members.map((member) => member.version)));
    this.#exit(1);
  }

  #exit(code: number): never {
    this.#plan.log.flush();
    process.exit(code); // a client that keeps its connection must not keep the process
  }

  #say(msg: string, more: object = {}): void {
    this.#plan.log.write(`${JSON.stringify({ level: 30, time: new Date().toISOString(), ...more, msg })}\n`);
  }

  /** Answers what concerns this member, and not the service. */
  #answerSelf({ method, url = "", headers }: IncomingMessage, response: ServerResponse): boolean {
    const path = url.split("?", 1)[0];
    if (method !== "GET") return false;
    if (path === "/healthz") answerWith(response, 200, JSON.stringify({ status: "ok" }));
    else if (path === "/readyz") this.#answerReady(response);
    // The leader answers with those of the service, too.
    else if (path === "/metrics" && this.#membership?.state.role === "following")
      void this.#answerMetrics(headers.authorization, response);
    else return false;
    return true;
  }

  async #answerMetrics(authorization: string | undefined, response: ServerResponse): Promise<void> {
    const token = bearerToken(authorization);
    if (!this.#copy.isCurrent)
      return answerWith(
        response,
        503,
        JSON.stringify({ error: "the leader has an older version; try again after its upgrade" }),
      );
    const bearer = token === undefined ? undefined : this.#tokens.find(token, Date.now());
    if (!bearer) return answerWith(response, 401, JSON.stringify({ error: "Authenticate: token validation error" }));
    if (!isOperator(bearer)) return answerWith(response, 403, JSON.stringify({ error: "unauthorized" }));
    const metrics = [...(await this.#processMetrics.read()), ...this.#metrics()];
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
    response.end([...linesOf(metrics)].join(""));
  }

  #answerReady(response: ServerResponse): void {
    const { role, epoch, leader } = this.#membership?.state ?? { role: "following", epoch: 0, leader: undefined };
    const isLeading = role === "leading";
    const standing = { role: isLeading ? "leader" : "standby", epoch, leader: leader?.address ?? null };
    const isReady = isLeading ? this.#created !== undefined : leader !== undefined;
    if (isReady) return answerWith(response, 200, JSON.stringify({ status: "ok", ...standing }));
    const error = "no member of the service leads";
    answerWith(response, 503, JSON.stringify({ error, ...standing }), { "retry-after": "1" });
  }
}

/** Follows the history, as far as it is kept. */
function followHistory({ folder, history }: Plan, log: Log, failed: (reason: string) => void) {
  if (history === "off") return undefined;
  return new FollowedHistory(historyKeeper(folder, history, failed), log, failed);
}

const printError = (text: string): void => void process.stderr.write(`machines-service: ${text}\n`);

/** Runs once what a leader begins with: the first time takes several times as long, in which no member would answer. */
async function warmUp(): Promise<void> {
  const service = createService({ delays: "none" });
  await service.app.ready();
  await service.close();
}

/** Refuses an address that other members cannot reach. */
function requireAdvertised({ options: { listen, advertise }, address, tls }: Plan): void {
  if (advertise === undefined) {
    if (!/^(?:0\.0\.0\.0|::)$/.test(address.host)) return;
    throw new Problem(`--listen ${listen} needs --advertise, the URL at which other members reach this one`);
  }
  const scheme = tls ? "https:" : "http:";
  if (!URL.canParse(advertise) || new URL(advertise).protocol !== scheme || new URL(advertise).pathname !== "/")
    throw new Problem(
      `--advertise takes a URL such as ${scheme}//machines-1.internal:4280, got ${JSON.stringify(advertise)}`,
    );
}
