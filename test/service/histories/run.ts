// Records histories: rounds of several histories at once on one service, which is disturbed in each round.
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../../../service/index.ts";
import type { Call } from "../client.ts";
import { diceOf, type Dice } from "../../support/organizations.ts";
import { unexpected, type Client, type Target } from "./client.ts";
import { appName, capacity, machineName, volume, type Listed } from "./competing.ts";
import { History, isLost } from "./history.ts";
import { machineTarget } from "./machine.ts";
import { regions, room } from "./regions.ts";
import { secretsTarget } from "./secrets.ts";

/** A service that is disturbed while clients ask it. */
export interface Disturbed {
  /** Sends a request. */
  readonly call: Call;
  /** The number of histories of a round, and how often it is disturbed in one. */
  readonly atOnce: number;
  readonly disturbances: number;
  /** Resolves when clients may send a request with this method. */
  up(method: string): Promise<void>;
  /** Resolves when every disturbance is over. */
  settled(): Promise<void>;
  /** Replaces the planned faults. */
  plan(faults: readonly Fault[]): Promise<void>;
  /** Disturbs it; these faults are planned afterwards. */
  disturb(faults: readonly Fault[]): void;
}

/** A history with its objects and clients. */
interface Scene {
  readonly history: History;
  readonly app: string;
  readonly dice: Dice;
  readonly targets: readonly [Target, ...Target[]];
  /** The number of operations of each client. */
  readonly clients: readonly number[];
}

/** Repeats what has no answer, because the service may be disturbed by a slow computer too. */
async function untilAnswered<T>(send: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++)
    try {
      return await send(attempt);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
}

async function prepare({ call }: Disturbed, id: string, region: string, attempt: number): Promise<Scene> {
  const dice = diceOf(id);
  const app = `app-${id}${attempt === 0 ? "" : `-${attempt}`}`;
  const made = await call("POST", "/apps", { name: app, org_slug: "personal" });
  if (made.status !== 201) throw unexpected(made);
  const history = new History(id);
  const { names } = history;
  const targets: Scene["targets"] = [
    await machineTarget(call, app, "one"),
    await machineTarget(call, app, "two"),
    secretsTarget(app),
    machineName(app, "web", names),
    appName(`${app}-other`),
    await volume(call, app, "data", names),
    capacity(app, region, room, names),
  ];
  const clients = Array.from({ length: 8 + dice.below(9) }, () => 6 + dice.below(9));
  return { history, app, dice, targets, clients };
}

/** Reads every object once more, learns the marks of all Machines, then deletes what the history left. */
async function finish(service: Disturbed, scene: Scene): Promise<void> {
  const { history, app, clients, targets } = scene;
  const last = clientOf(service, scene, clients.length, () => {});
  for (const target of targets) await target.read(last(target));
  const ask = (...request: Parameters<Call>) => untilAnswered(() => service.call(...request));
  const { body } = await ask("GET", `/apps/${app}/machines?include_deleted=true`);
  for (const { id, config } of body as Listed[]) history.names.set(id, config.env.MARK);
  for (const one of [app, `${app}-other`]) await ask("DELETE", `/apps/${one}?force=true`);
}

/** Draws faults for some of the next requests to an App. */
function faultsFor({ app, dice }: Scene): Fault[] {
  return Array.from({ length: dice.below(6) }, () => {
    const when = dice.one(["before", "after"] as const);
    const effect = dice.one<Fault>([
      { status: 502, when },
      { status: "reset", when },
      { delayMs: 1 + dice.below(15), when },
      { truncate: dice.below(20) },
    ]);
    return { ...effect, path: `/apps/${app}`, nth: 1 + dice.below(60) };
  });
}

/** A client as each object sees it. */
function clientOf(service: Disturbed, { history }: Scene, number: number, asked: () => void) {
  const dice = diceOf(`${history.id} ${number}`);
  let marks = 0;
  return ({ object, key }: Target): Client => ({
    number,
    dice,
    mark: () => `c${number}-${++marks}`,
    async ask(input, request, outputOf) {
      await service.up(request[0]);
      asked();
      return history.record({ client: number, object, key, input }, () => service.call(...request), outputOf);
    },
  });
}

/** Sends the requests of one client. */
async function act(service: Disturbed, scene: Scene, number: number, count: number, asked: () => void): Promise<void> {
  const client = clientOf(service, scene, number, asked);
  for (let i = 0; i < count; i++) {
    const target = client(scene.targets[0]).dice.one(scene.targets);
    await target.act(client(target));
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Records one history for each id, all at once, with disturbances at moments that the dice draw. */
async function recordRound(service: Disturbed, ids: readonly string[], dice: Dice): Promise<History[]> {
  const scenes: Scene[] = [];
  for (const [i, id] of ids.entries())
    scenes.push(await untilAnswered((attempt) => prepare(service, id, regions[i] ?? regions[0], attempt)));
  await service.plan(scenes.flatMap(faultsFor));
  const all = sum(scenes.flatMap(({ clients }) => clients));
  const moments = Array.from(
    { length: service.disturbances },
    () => Math.floor(all / 10) + dice.below(Math.floor(all * 0.7)),
  );
  let count = 0;
  const begun: Promise<void>[] = [];
  const asked = (): void => {
    count++;
    for (const moment of moments.filter((one) => one < count)) {
      moments.splice(moments.indexOf(moment), 1);
      begun.push(sleep(dice.below(4)).then(() => service.disturb(scenes.flatMap(faultsFor))));
    }
  };
  await Promise.all(scenes.flatMap((scene) => scene.clients.map((n, number) => act(service, scene, number, n, asked))));
  await Promise.all(begun);
  await service.settled();
  await service.plan([]);
  for (const scene of scenes) await finish(service, scene);
  return scenes.map(({ history }) => history);
}

/** Records histories, whose ids begin with the seed. */
export async function record(service: Disturbed, seed: string, count: number): Promise<History[]> {
  const dice = diceOf(seed);
  const ids = Array.from({ length: count }, (_, i) => `${seed}-${i}`);
  const histories: History[] = [];
  for (let i = 0; i < count; i += service.atOnce)
    histories.push(...(await recordRound(service, ids.slice(i, i + service.atOnce), dice)));
  return histories;
}
