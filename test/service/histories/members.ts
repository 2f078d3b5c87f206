// Three members as real processes on two PostgreSQL servers, all of which are disturbed while clients ask any of them.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, vi } from "vitest";
import type { Fault } from "../../../service/index.ts";
import { withResolvers } from "../../../service/withResolvers.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { diceOf, type Dice } from "../../support/organizations.ts";
import { hang } from "../../support/patience.mts";
import { caller, type Answer, type Call } from "../client.ts";
import { folder, foreground } from "../command.ts";
import { Forwarder, type Cut } from "../replication/forwarder.ts";
import { startPair, type PostgresPair } from "../replication/postgres.ts";
import { serviceOn, standing } from "../replication/processes.ts";
import { plantedIn, type Change } from "./bugs.ts";
import { isLost } from "./history.ts";
import { regionsFile } from "./regions.ts";
import type { Disturbed } from "./run.ts";

/** Exit code of a member that has lost its leadership. */
const lostLeadership = 4;

/** A member, which is started again whenever it ends. */
class KeptMember {
  readonly data = folder();
  readonly network: Forwarder;
  readonly #begin: (member: KeptMember) => ReturnType<typeof foreground>;
  #running: Awaited<ReturnType<typeof foreground>> | undefined;
  #isOver = false;
  /** Whether clients send it no changes. */
  isOnlyRead = false;
  /** An end that no disturbance explains. */
  problem: string | undefined;

  constructor(network: Forwarder, begin: (member: KeptMember) => ReturnType<typeof foreground>) {
    this.network = network;
    this.#begin = begin;
  }

  /** Undefined while it starts. */
  get running() {
    return this.#running;
  }

  async keep(): Promise<void> {
    while (!this.#isOver && this.problem === undefined)
      try {
        const running = await this.#begin(this);
        // What is registered last runs first.
        afterThisTest(() => void (this.#isOver = true));
        this.#running = running;
        const { code, err } = await running.end;
        this.#running = undefined;
        if (code !== null && code !== lostLeadership) this.problem = `ended with ${code}: ${err}`;
      } catch (error) {
        // It cannot start while it does not reach the database.
        if (!String(error).includes("cannot be reached")) this.problem = String(error);
        await sleep(100);
      }
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#running) process.kill(this.#running.pid, signal);
  }
}

/** What happens to a member, or to the database. */
const kinds = ["kill", "pause", "cut", "restart", "failOver"] as const;
type Kind = (typeof kinds)[number];

/** The members of a service, and what happens to them. */
export class Members implements Disturbed {
  readonly atOnce = 5;
  readonly disturbances = 2;
  readonly all: readonly KeptMember[];
  readonly #database: PostgresPair;
  readonly #dice: Dice;
  /** The number of changes that have no answer yet. */
  #changing = 0;
  /** Clients begin no change before this. */
  #quiet = Promise.resolve();
  /** The disturbances, one after the other. */
  #over = Promise.resolve();
  /** What is next, so that even a few rounds have everything. */
  #next: Kind[] = [];

  constructor(all: readonly KeptMember[], database: PostgresPair, seed: string) {
    this.all = all;
    this.#database = database;
    this.#dice = diceOf(`${seed} members`);
  }

  readonly #kinds: Readonly<Record<Kind, (victim: KeptMember) => Promise<void> | void>> = {
    kill: (victim) => victim.signal("SIGKILL"),
    pause: async (victim) => {
      await this.#without(victim, () => victim.signal("SIGSTOP"));
      victim.signal("SIGCONT");
    },
    cut: async (victim) => {
      const how = this.#dice.one<Cut>(["refuses", "is silent"]);
      await this.#without(victim, () => victim.network.cut(how));
      victim.network.heal();
    },
    restart: async () => {
      await this.#database.stop();
      await sleep(this.#dice.below(1000));
      await this.#database.start();
    },
    failOver: () => this.#database.failOver(),
  };

  readonly call: Call = async (...request) => {
    const isChange = request[0] !== "GET";
    this.#changing += Number(isChange);
    try {
      return await this.#ask(isChange, request);
    } finally {
      this.#changing -= Number(isChange);
    }
  };

  /** Clients ask all the time, and change nothing for a part of it. */
  async up(method: string): Promise<void> {
    if (method !== "GET") await this.#quiet;
  }

  async plan(): Promise<void> {}

  disturb(_: readonly Fault[]): void {
    this.#over = this.#over.then(() => this.#disturb());
  }

  async settled(): Promise<void> {
    await this.#over;
    const look = () =>
      this.#agreed().then(
        () => true,
        () => false,
      );
    while (!(await look())) {
      this.#requireNoProblem();
      await sleep(20);
    }
  }

  /** Number of the latest leadership. */
  async epoch(): Promise<number> {
    return (await this.#agreed())?.epoch ?? 0;
  }

  async #ask(isChange: boolean, request: Parameters<Call>): Promise<Answer> {
    for (;;) {
      this.#requireNoProblem();
      const { isOnlyRead, running } = this.#one();
      const send = (): Promise<Answer> => caller(running?.url ?? "", running?.token ?? "")(...request);
      const answer = running && !(isOnlyRead && isChange) ? await unlessRefused(send) : undefined;
      if (answer) return answer;
      await sleep(10);
    }
  }

  #requireNoProblem(): void {
    for (const { problem } of this.all) if (problem !== undefined) throw new Error(`a member ${problem}`);
  }

  async #disturb(): Promise<void> {
    const dice = this.#dice;
    if (this.#next.length === 0) this.#next = [...kinds];
    const [kind = "kill"] = this.#next.splice(dice.below(this.#next.length), 1);
    // Mostly the leader, if there is one.
    const leader = dice.chance(80) ? await this.leader() : undefined;
    const victim = leader ?? this.#one();
    await this.#kinds[kind](victim);
  }

  #one(): KeptMember {
    return this.#dice.one(this.all as [KeptMember, ...KeptMember[]]);
  }

  /** The member that says it leads, except for one; undefined if there is none. */
  async leader(except?: KeptMember): Promise<KeptMember | undefined> {
    for (const one of this.all)
      if (one !== except && one.running && (await standing(one.running))?.role === "leader") return one;
    return undefined;
  }

  /** Waits until another member leads, and clients had some time to ask it. */
  async #without(victim: KeptMember, disable: () => void): Promise<void> {
    const { promise, resolve } = withResolvers();
    // While a change waits for the log, every read waits with it. A stale one shows only where no change came.
    victim.isOnlyRead = this.#dice.chance(50);
    if (victim.isOnlyRead) {
      this.#quiet = promise;
      await vi.waitFor(() => expect(this.#changing).toBe(0), { timeout: hang, interval: 5 });
    }
    disable();
    await vi.waitFor(async () => expect(await this.leader(victim)).toBeDefined(), { timeout: hang, interval: 20 });
    resolve();
    await sleep(100 + this.#dice.below(500));
    victim.isOnlyRead = false;
  }

  /** Throws unless all members run, and know the same leader. */
  async #agreed() {
    const said = await Promise.all(this.all.map(async ({ running }) => running && standing(running)));
    expect(said.filter((one) => one?.role === "leader")).toHaveLength(1);
    expect(new Set(said.map((one) => one && `${one.epoch} ${one.leader}`)).size).toBe(1);
    return said[0];
  }
}

/** Undefined if the request had no effect: no process listened, or it said so. */
async function unlessRefused(send: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    const answer = await send();
    return answer.status === 503 && answer.headers.has("machines-not-accepted") ? undefined : answer;
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    if (isLost(error) && cause?.code === "ECONNREFUSED") return undefined;
    throw error;
  }
}

/** Starts three members, whose code is changed while it is loaded. */
export async function startMembers(seed: string, changes: readonly Change[] = []): Promise<Members> {
  const database = await startPair();
  afterThisTest(() => database.remove());
  const networks = await Promise.all([1, 2, 3].map(() => Forwarder.to(() => database.port)));
  afterThisTest(() => networks.forEach((network) => network.close()));
  const service = serviceOn(`postgres://postgres@127.0.0.1:${database.port}/postgres`);
  const regions = join(dirname(service.keyFile), "regions.json");
  writeFileSync(regions, JSON.stringify(regionsFile));
  const all = networks.map(
    (network) =>
      new KeptMember(network, (member) => {
        const store = `postgres://postgres@127.0.0.1:${network.port}/postgres`;
        return foreground(
          member.data,
          [...service.options, "--store", store, "--regions", regions],
          plantedIn(changes),
        );
      }),
  );
  for (const one of all) void one.keep();
  const members = new Members(all, database, seed);
  await members.settled();
  return members;
}
