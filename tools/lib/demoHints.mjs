// What the demo says at its end: the next commands, for what the run of Pulumi came to.

/** The last lines: the address to open, with a code that is valid for a short time. */
export const consoleHint = (url, service) =>
  `\nSee it in the browser, within five minutes (later with ${service("console")}):\n${url}`;

/** Whether the log of a run's events says that nothing differed. */
export function isUnchanged(events) {
  const summaries = events.split("\n").flatMap((line) => {
    if (!line.includes('"summaryEvent"')) return [];
    try {
      return [JSON.parse(line).summaryEvent?.resourceChanges];
    } catch {
      return []; // written in part
    }
  });
  const changes = summaries.at(-1);
  return changes !== undefined && Object.keys(changes).every((kind) => kind === "same");
}

/** The command that runs the demo again, for a runtime: with another word, or with none. */
export const demoFor = (runtime) => (word) => {
  const args = [...(word === undefined ? [] : [word]), ...(runtime === "simulated" ? [] : ["--runtime", runtime])];
  return args.length === 0 ? "npm run demo" : `npm run demo -- ${args.join(" ")}`;
};

/** The hint after a command that failed. A preview changes nothing, so there is nothing that another run would go on with. */
export const hintAfterFailure = (command, code, demo) =>
  `\npulumi ${command} ended with exit code ${code}. ${
    command === "preview"
      ? `Nothing was changed. Correct what it names, then run ${demo("preview")} again.`
      : `Run ${demo(command === "up" ? undefined : command)} again to continue.`
  }`;

/**
 * The hints after a command. `service` runs a command of the demo's service, whose data is not in the usual folder, and `demo` the
 * demo itself.
 */
export function hintsAfter(command, unchanged, service, demo = demoFor("simulated")) {
  const line = (text, effect) => `  ${text.padEnd(demo("destroy").length)}   ${effect}`;
  const hints = {
    up: [
      "What to try next:",
      line(demo(), "again: everything is unchanged"),
      `  edit examples/quickstart/index.ts, then ${demo("preview")}`,
      line(demo("refresh"), "compares the stack with what the service has"),
      line(demo("destroy"), "deletes all resources of the stack"),
      `  ${service("ls")}   lists what the service holds; also status, logs, console`,
      line(demo("stop"), "stops the service"),
    ].join("\n"),
    preview: unchanged
      ? `There is nothing to apply: edit examples/quickstart/index.ts, then ${demo("preview")}`
      : `To apply these changes: ${demo()}`,
    refresh: unchanged
      ? "The service has what the stack has: there is nothing to bring back."
      : `To bring back what differs: ${demo()}`,
    destroy: `The stack and the service are still there: ${demo()} creates everything again, ${demo("stop")} stops the service.`,
  };
  return hints[command];
}
