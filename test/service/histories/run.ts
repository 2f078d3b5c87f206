// Records histories: rounds of several histories at once on one service, which is killed in each round.
import type { Fault } from "../../../service/index.ts";
import { diceOf, type Dice } from "../../support/organizations.ts";
import type { Client, Target } from "./client.ts";
import { History } from "./history.ts";
import type { Killable } from "./killable.ts";
import { machineTarget } from "./machine.ts";

// One kill then interrupts several histories, because a restart takes longer than a history.
const atOnce = 3;

/** The objects of a history. */
interface Scene {
  readonly history: History;
  readonly app: string;
  readonly dice: Dice;
  readonly targets: readonly Target[];
  /** The number of operations of each client. */
  readonly clients: readonly number[];
}

async function prepare({ call }: Killable, id: string): Promise<Scene> {
  const dice = diceOf(id);
  const app = `app-${id}`;
  const made = await call("POST", "/apps", { name: app, org_slug: "personal" });
  if (made.status !== 201) throw new Error(`creating an App gave ${made.status} ${made.text}`);
  const targets = [await machineTarget(call, app, "one"), await machineTarget(call, app, "two")];
  const clients = Array.from({ length: 8 + dice.below(9) }, () => 4 + dice.below(9));
  return { history: new History(id), app, dice, targets, clients };
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
    return { ...effect, path: `/apps/${app}/`, nth: 1 + dice.below(60) };
  });
}

/** Sends the requests of one client. */
async function act(service: Killable, scene: Scene, number: number, count: number, asked: () => void): Promise<void> {
  const dice = diceOf(`${scene.history.id} ${number}`);
  const [first, ...others] = scene.targets;
  if (!first) return;
  let marks = 0;
  for (let i = 0; i < count; i++) {
    const { object, key, ...target } = ((one: Target) => ({
      object: one.object,
      key: one.key,
      act: one.act.bind(one),
    }))(dice.one([first, ...others]));
    const client: Client = {
      number,
      dice,
      mark: () => `c${number}-${++marks}`,
      async ask(input, request, outputOf) {
        await service.up();
        asked();
        return scene.history.record({ client: number, object, key, input }, () => service.call(...request), outputOf);
      },
    };
    await target.act(client);
  }
}

/** Recorded histories, and how often the service was killed meanwhile. */
interface Recorded {
  readonly histories: readonly History[];
  readonly kills: number;
}

/** Records histories whose ids begin with the seed. Each round is killed at a moment that the seed draws. */
export async function record(service: Killable, seed: string, count: number): Promise<Recorded> {
  const dice = diceOf(seed);
  const histories: History[] = [];
  let kills = 0;
  while (histories.length < count) {
    const ids = Array.from(
      { length: Math.min(atOnce, count - histories.length) },
      (_, i) => `${seed}-${histories.length + i}`,
    );
    const scenes: Scene[] = [];
    for (const id of ids) scenes.push(await prepare(service, id));
    await service.plan(scenes.flatMap(faultsFor));
    kills++;
    let left = dice.below(scenes.flatMap(({ clients }) => clients).reduce((sum, n) => sum + n, 0));
    const asked = (): void => {
      if (left-- === 0) setTimeout(() => service.kill(), dice.below(4));
    };
    await Promise.all(
      scenes.flatMap((scene) => scene.clients.map((n, number) => act(service, scene, number, n, asked))),
    );
    for (const { app } of scenes) await service.call("DELETE", `/apps/${app}?force=true`);
    histories.push(...scenes.map(({ history }) => history));
  }
  return { histories, kills };
}
