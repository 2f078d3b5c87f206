// The commands a simulated Machine understands: echo, env, cat, hostname, sleep, true, false, exit N, and `sh -c` with one
// of them. Other commands end with 127, as in a shell.
import { environmentOf } from "./environment.ts";
import type { Clock } from "../time/clock.ts";
import { commandIn, exitCodeOf } from "./shellWords.ts";
import type { Command, Outcome, Subject } from "./runtime.ts";

const outcome = (exitCode: number, stdout = "", stderr = ""): Outcome => ({ stdout, stderr, exitCode, exitSignal: 0 });

/** The environment of a simulated Machine's processes. */
export const simulatedEnvironment = (machine: Subject): Record<string, string> => ({
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

const commands: Readonly<Record<string, Run>> = {
  echo: (_machine, args) => outcome(0, `${args.join(" ")}\n`),
  env: (machine) =>
    outcome(
      0,
      Object.entries(simulatedEnvironment(machine))
        .map(([name, value]) => `${name}=${value}\n`)
        .join(""),
    ),
  hostname: (machine) => outcome(0, `${simulatedEnvironment(machine)["HOSTNAME"]}\n`),
  true: () => outcome(0),
  false: () => outcome(1),
  exit(_machine, [text]) {
    const code = exitCodeOf(text);
    return code === undefined ? outcome(2, "", `exit: ${text}: not a number\n`) : outcome(code);
  },
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

/** Runs a command in a simulated Machine; undefined if it does not exit in time. */
export async function run(machine: Subject, command: Command, clock: Clock): Promise<Outcome | undefined> {
  const [name, ...args] = commandIn(command.words);
  if (name === "sleep") return sleep(args, command, clock);
  const known = Object.hasOwn(commands, name) ? commands[name] : undefined;
  return known ? known(machine, args, command.stdin) : outcome(127, "", `${name}: command not found\n`);
}

function sleep(
  [text = ""]: readonly string[],
  { timeoutMs, signal }: Command,
  clock: Clock,
): Promise<Outcome | undefined> {
  const seconds = Number(text);
  if (text === "" || !(seconds >= 0))
    return Promise.resolve(outcome(1, "", `sleep: invalid time interval '${text}'\n`));
  return new Promise((resolve) => {
    const inTime = seconds * 1000 <= timeoutMs;
    const cancel = clock.after(inTime ? seconds * 1000 : timeoutMs, () => resolve(inTime ? outcome(0) : undefined));
    signal.addEventListener("abort", () => {
      cancel();
      resolve(undefined);
    });
  });
}
