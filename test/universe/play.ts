// Plays a story, and judges it: the campaign's invariants for every stack, and those of the members.
import { stopTime } from "./sameTurn.ts";
import { Broken } from "../faults/invariants.ts";
import { playOn, type Played } from "../faults/player.ts";
import type { Simulation } from "../support/simulation.ts";
import type { Bug } from "./bugs.ts";
import type { MemberProcess } from "./member.ts";
import { enter } from "./person.ts";
import type { Disturbance, Story } from "./story.ts";
import { World, type WorldOptions } from "./world.ts";

/** What happened in a story. */
export interface Result extends Pick<Played, "steps" | "failed" | "died" | "simulatedMs"> {
  readonly requests: number;
  readonly takeovers: number;
}

/** Options of one playing. */
export interface Playing extends Pick<WorldOptions, "hasConsole" | "onNote"> {
  readonly bug?: Bug | undefined;
  /** Is given the universe before anything happens in it. */
  readonly onWorld?: (world: World) => void;
}

/** Plays a story. @throws Broken when an invariant is violated; the error has all that happened. */
export async function play(story: Story, { onWorld, ...options }: Playing = {}): Promise<Result> {
  const { members, luck } = story;
  const resume = stopTime();
  const world = new World({ seed: "universe", luck, members, ...options });
  onWorld?.(world);
  try {
    return await world.pass(live(world, story));
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Broken(`${text}\n\n${world.notes.join("\n")}`);
  } finally {
    await world.close();
    resume();
  }
}

async function live(world: World, { people, disturbances }: Story): Promise<Result> {
  const from = world.time.now();
  const entered: Simulation[] = [];
  for (const index of people.keys()) entered.push(await enter(world, `person-${index + 1}`));
  for (const one of disturbances) world.time.after(one.at * 1000, () => disturb(world, one));
  // What goes wrong ends for all at once, when everyone has done what they do meanwhile.
  const waiting = new Set(people.keys());
  let calm: Promise<void> | undefined;
  const calmFor = async (index: number): Promise<void> => {
    waiting.delete(index);
    while (waiting.size > 0) await world.wait(1000);
    await (calm ??= world.calm());
  };
  try {
    const played = await Promise.all(
      people.map((scenario, index) => {
        const name = `person ${index + 1}`;
        return playOn(entered[index] as Simulation, scenario, {
          isTroubled: true,
          calm: () => calmFor(index),
          slug: `person-${index + 1}`,
          onLine: (line) => world.note(`${name} ${line.trim()}`),
        });
      }),
    );
    const sum = (name: "steps" | "failed" | "died"): number => played.reduce((all, one) => all + one[name], 0);
    return {
      ...{ steps: sum("steps"), failed: sum("failed"), died: sum("died") },
      ...{ requests: world.requests, takeovers: world.takeovers, simulatedMs: world.time.now() - from },
    };
  } finally {
    for (const one of entered) await one.close();
  }
}

/** Lets something go wrong, unless everything is calm already. */
function disturb(world: World, { what, seconds, member }: Disturbance): void {
  if (world.isCalm || world.isOver) return;
  const processes = world.seats.map(({ process }) => process);
  const leading = processes.find(({ answers }) => answers);
  const chosen: MemberProcess | undefined = processes[member] ?? leading ?? processes[0];
  const ms = seconds * 1000;
  world.note(`${what}${isOfMember(what) ? ` of member ${chosen?.id ?? ""}` : ""} for ${seconds} s`);
  if (what === "kill") chosen?.kill();
  else if (what === "pause") chosen?.pause(ms);
  else if (what === "cut") chosen?.cut(ms);
  else if (what === "hand over") chosen?.stop();
  else if (what === "clock of the log") world.wrongBy += (seconds - 10) * 600_000;
  else {
    world.fate.begin(what);
    world.time.after(ms, () => world.fate.end(what));
  }
}

const isOfMember = (what: Disturbance["what"]): boolean =>
  what === "kill" || what === "pause" || what === "cut" || what === "hand over";
