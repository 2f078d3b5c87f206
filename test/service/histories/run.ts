// Records histories: rounds of several histories at once on one service, which is killed in each round.
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../../../service/index.ts";
import { diceOf, type Dice } from "../../support/organizations.ts";
import { unexpected, type Target } from "./client.ts";
import { appName, capacity, machineName, volume, type Listed } from "./competing.ts";
import { History } from "./history.ts";
import type { Killable } from "./killable.ts";
import { machineTarget } from "./machine.ts";
import { regions, room } from "./regions.ts";
import { secretsTarget } from "./secrets.ts";

/** A history with its objects and clients. */
interface Scene {
  readonly history: History;
  readonly app: string;
  readonly dice: Dice;
  readonly targets: readonly [Target, ...Target[]];
  /** The number of operations of each client. */
  readonly clients: readonly number[];
}

async function prepare({ call }: Killable, id: string, region: string): Promise<Scene> {
  const dice = diceOf(id);
  const app = `app-${id}`;
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

/** Learns the marks of all Machines, then deletes what the history left. */
async function finish({ call }: Killable, { history, app }: Scene): Promise<void> {
  const { body } = await call("GET", `/apps/${app}/machines?include_deleted=true`);
  for (const { id, config } of body as Listed[]) history.names.set(id, config.env.MARK);
  for (const one of [app, `${app}-other`]) await call("DELETE", `/apps/${one}?force=true`);
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

/** Sends the requests of one client. */
async function act(service: Killable, scene: Scene, number: number, count: number, asked: () => void): Promise<void> {
  const dice = diceOf(`${scene.history.id} ${number}`);
  let marks = 0;
  for (let i = 0; i < count; i++) {
    const target = dice.one(scene.targets);
    const { object, key } = target;
    await target.act({
      number,
      dice,
      mark: () => `c${number}-${++marks}`,
      async ask(input, request, outputOf) {
        await service.up();
        asked();
        return scene.history.record({ client: number, object, key, input }, () => service.call(...request), outputOf);
      },
    });
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Records one history for each id, all at once, with a kill at a moment that the dice draw. */
async function recordRound(service: Killable, ids: readonly string[], dice: Dice): Promise<History[]> {
  const scenes: Scene[] = [];
  for (const [i, id] of ids.entries()) scenes.push(await prepare(service, id, regions[i] ?? regions[0]));
  await service.plan(scenes.flatMap(faultsFor));
  const all = sum(scenes.flatMap(({ clients }) => clients));
  let left = Math.floor(all / 10) + dice.below(Math.floor(all * 0.7));
  let killed: Promise<void> | undefined;
  const asked = (): void => {
    if (left-- > 0) return;
    killed ??= sleep(dice.below(4)).then(() => service.kill(scenes.flatMap(faultsFor)));
  };
  await Promise.all(scenes.flatMap((scene) => scene.clients.map((n, number) => act(service, scene, number, n, asked))));
  await killed;
  await service.up();
  await service.plan([]);
  for (const scene of scenes) await finish(service, scene);
  return scenes.map(({ history }) => history);
}

/** Records histories, whose ids begin with the seed. */
export async function record(service: Killable, seed: string, count: number): Promise<History[]> {
  const dice = diceOf(seed);
  const ids = Array.from({ length: count }, (_, i) => `${seed}-${i}`);
  const histories: History[] = [];
  for (let i = 0; i < count; i += regions.length)
    histories.push(...(await recordRound(service, ids.slice(i, i + regions.length), dice)));
  return histories;
}
