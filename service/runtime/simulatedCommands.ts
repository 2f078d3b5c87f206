// The commands a simulated Machine understands: echo, env, cat, hostname, sleep, true, false, exit N, and `sh -c` with a script
// of them (shellScript.ts).
import { environmentOf } from "./environment.ts";
import type { Clock } from "../time/clock.ts";
import { scriptOf } from "./shellScript.ts";
import { commandIn, exitCodeOf, nameOf, scriptIn } from "./shellWords.ts";
import type { Command, Outcome, Subject } from "./runtime.ts";

const outcome = (exitCode: number, stdout = "", stderr = ""): Outcome => ({ stdout, stderr, exitCode, exitSignal: 0 });

/** The environment of a simulated Machine's processes. */
const simulatedEnvironment = (machine: Subject): Record<string, string> => ({
  HOSTNAME: machine.config.dns?.hostname ?? machine.id,
  HOME: "/root",
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  ...environmentOf(machine),
});

/** Contents of a file of the configuration; undefined when there is none at that path. */
function fileAt({ config, secrets }: Subject, path: string): Buffer | undefined {
  const file = config.files?.find(({ guest_path }) => guest_path === path);
  if (!file) return undefined;
  if (file.raw_value !== undefined) return Buffer.from(file.raw_value, "base64");
  // The secret of a file is base64 (docs/interface.md#machine-configuration says so for raw_value; the
  // platform does the same for secrets).
  if (file.secret_name !== undefined)
    return Buffer.from(new Map(Object.entries(secrets())).get(file.secret_name) ?? "", "base64");
  return Buffer.from(file.image_config ?? "");
}

type Run = (machine: Subject, args: readonly string[], stdin: string) => Outcome;
type Commands = Readonly<Record<string, Run>>;

/** Those that end wherever they run, and always in the same way. */
const ending: Commands = {
  echo: (_machine, [first, ...rest]) => outcome(0, first === "-n" ? rest.join(" ") : `${[first, ...rest].join(" ")}\n`),
  true: () => outcome(0),
  false: () => outcome(1),
  exit(_machine, [text]) {
    const code = exitCodeOf(text);
    return code === undefined ? outcome(2, "", `exit: ${text}: not a number\n`) : outcome(code);
  },
};

/** All that a client can run beside a program. */
const inside: Commands = {
  ...ending,
  env: (machine) =>
    outcome(
      0,
      Object.entries(simulatedEnvironment(machine))
        .map(([name, value]) => `${name}=${value}\n`)
        .join(""),
    ),
  hostname: (machine) => outcome(0, `${simulatedEnvironment(machine)["HOSTNAME"]}\n`),
  cat(machine, paths, stdin) {
    if (paths.length === 0) return outcome(0, stdin);
    let [stdout, stderr] = ["", ""];
    for (const path of paths) {
      const contents = fileAt(machine, path);
      if (contents) stdout += contents.toString();
      else stderr += `cat: ${path}: No such file or directory\n`;
    }
    return outcome(stderr === "" ? 0 : 1, stdout, stderr);
  },
};

/** What words do, and for how long. */
interface Evaluated extends Outcome {
  /** Both outputs as they were written. */
  readonly written: string;
  /** Milliseconds; infinite if they never end. */
  readonly ms: number;
}

interface Setting {
  readonly machine: Subject;
  readonly stdin: string;
  readonly commands: Commands;
  /** The result of any other command, and of a script that is not understood; undefined if that is not known. */
  readonly other: (words: readonly string[]) => Evaluated | undefined;
}

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const amount = /^(\d+(?:\.\d*)?|\.\d+)([smhd]?)$/;

/** Milliseconds of `sleep` with these arguments; undefined if it refuses them. */
function sleepMs(args: readonly string[]): number | undefined {
  const each = args.map((text) => {
    if (/^inf(inity)?$/i.test(text)) return Infinity;
    const [, number, unit = ""] = amount.exec(text) ?? [];
    return number === undefined ? NaN : Number(number) * (units[unit] ?? 1) * 1000;
  });
  const ms = each.reduce((sum, one) => sum + one, 0);
  return each.length === 0 || Number.isNaN(ms) ? undefined : ms;
}

/** What words do; undefined as soon as that is not known. */
function evaluate(words: readonly string[], setting: Setting): Evaluated | undefined {
  const { machine, stdin, commands, other } = setting;
  const script = scriptIn(words);
  if (script === undefined) {
    const [path = "", ...args] = words;
    const name = nameOf(path);
    if (name === "sleep") {
      const ms = sleepMs(args);
      return ms === undefined
        ? timed(outcome(1, "", `sleep: invalid time interval '${args.join(" ")}'\n`))
        : timed(outcome(0), ms);
    }
    const known = Object.hasOwn(commands, name) ? commands[name] : undefined;
    return known ? timed(known(machine, args, stdin)) : other(words);
  }
  const parsed = scriptOf(script, () => simulatedEnvironment(machine));
  if (!parsed) return other(words);
  let [stdout, stderr, written, exitCode, ms] = ["", "", "", 0, 0];
  for (const { after, words: inner, toStderr } of parsed) {
    if (after === "&&" ? exitCode !== 0 : after === "||" && exitCode === 0) continue;
    const exits = inner[0] === "exit";
    const done = evaluate(exits && inner.length === 1 ? ["exit", String(exitCode)] : inner, setting);
    if (!done) return undefined;
    if (!toStderr) stdout += done.stdout;
    stderr += toStderr ? done.written : done.stderr;
    written += done.written;
    ({ exitCode } = done);
    ms += done.ms;
    if (exits || ms === Infinity) break;
  }
  return { ...outcome(exitCode, stdout, stderr), written, ms };
}

const timed = (done: Outcome, ms = 0): Evaluated => ({ ...done, written: done.stdout + done.stderr, ms });

/** Runs a command in a simulated Machine; undefined if it does not exit in time. */
export function run(machine: Subject, command: Command, clock: Clock): Promise<Outcome | undefined> {
  const { words, stdin, timeoutMs, signal } = command;
  const setting: Setting = {
    ...{ machine, stdin, commands: inside },
    // Of a script that is not understood, its first command runs.
    other: (found) =>
      scriptIn(found) === undefined
        ? timed(outcome(127, "", `${nameOf(found[0] ?? "")}: command not found\n`))
        : evaluate(commandIn(found), setting),
  };
  const done = evaluate(words, setting);
  if (!done) return Promise.resolve(undefined);
  const { stdout, stderr, exitCode, exitSignal, ms } = done;
  const result = { stdout, stderr, exitCode, exitSignal };
  if (ms === 0) return Promise.resolve(result);
  return new Promise((resolve) => {
    const inTime = ms <= timeoutMs;
    const cancel = clock.after(inTime ? ms : timeoutMs, () => resolve(inTime ? result : undefined));
    signal.addEventListener("abort", () => {
      cancel();
      resolve(undefined);
    });
  });
}

/** How a simulated program ends. */
export interface ProgramEnd {
  readonly code: number;
  readonly ms: number;
  readonly lines: readonly string[];
}

/**
 * How the program of a Machine ends by itself; undefined if it runs on. Only what is known to end ends. A Machine that destroys
 * itself says so of any other command of its own; it then succeeds.
 */
export function programEnd(machine: Subject): ProgramEnd | undefined {
  const { init = {}, auto_destroy: isJob } = machine.config;
  const words = init.exec ?? [...(init.entrypoint ?? []), ...(init.cmd ?? [])];
  if (words.length === 0) return undefined;
  const other = (): Evaluated | undefined => (isJob ? timed(outcome(0)) : undefined);
  const done = evaluate(words, { machine, stdin: "", commands: ending, other });
  if (!done || done.ms === Infinity) return undefined;
  return { code: done.exitCode, ms: done.ms, lines: linesOf(done.written) };
}

const linesOf = (text: string): string[] =>
  text
    .replace(/\n$/, "")
    .split("\n")
    .slice(text === "" ? 1 : 0);
