// The command line of the demo.

/** The words of the demo, with the arguments of Pulumi that each begins with. */
export const commands = {
  up: ["up", "--yes"],
  // Without the properties, a preview says only which resources change.
  preview: ["preview", "--diff"],
  refresh: ["refresh", "--yes", "--clear-pending-creates"],
  destroy: ["destroy", "--yes"],
  stop: [],
};

/** Options of Pulumi that the demo gives itself. */
const ours = /^(--(stack|config-file|cwd|event-log)(=|$)|-[sC])/;

/**
 * The word, the runtime of the service, and the options for Pulumi; or what is wrong with them.
 * @param {string[]} args
 * @returns {{ command: keyof typeof commands, runtime: string, options: string[], problem?: string }}
 */
export function readArguments(args) {
  const at = args.findIndex((one) => one === "--runtime" || one.startsWith("--runtime="));
  const [, given] = args[at]?.split("=") ?? [];
  const words = at < 0 ? args : args.toSpliced(at, given === undefined ? 2 : 1);
  const runtime = at < 0 ? "simulated" : (given ?? args[at + 1] ?? "");
  const hasWord = words.length > 0 && !words[0].startsWith("-");
  const [command, options] = hasWord ? [words[0], words.slice(1)] : ["up", words];
  const isKnown = Object.hasOwn(commands, command) && ["simulated", "docker"].includes(runtime);
  const problem = problemOf(command, runtime, options);
  return isKnown
    ? { command, runtime, options, problem }
    : { command: "up", runtime: "simulated", options: [], problem };
}

function problemOf(command, runtime, options) {
  const takes = `npm run demo takes one word, ${Object.keys(commands).join(", ")} (up when left out), then options of Pulumi such as --diff, and --runtime`;
  if (!Object.hasOwn(commands, command)) return `${takes}; not "${command}".`;
  if (!["simulated", "docker"].includes(runtime)) return `--runtime is simulated or docker; not "${runtime}".`;
  const [first] = options;
  if (first === undefined) return undefined;
  if (command === "stop") return `npm run demo -- stop takes no options; not "${first}".`;
  if (!first.startsWith("-")) return `${takes}; not "${first}" after ${command}.`;
  const taken = options.find((option) => ours.test(option));
  return taken && `npm run demo has a stack of its own, so it does not take ${taken}.`;
}
