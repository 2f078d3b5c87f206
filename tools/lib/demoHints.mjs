// What the demo says at its end: the next commands, for what the run of Pulumi came to.

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

/** The hints after a command. `service` runs a command of the demo's service, whose data is not in the usual folder. */
export function hintsAfter(command, unchanged, service) {
  const hints = {
    up: `What to try next:
  npm run demo              again: everything is unchanged
  edit examples/quickstart/index.ts, then npm run demo -- preview
  npm run demo -- refresh   compares the stack with what the service has
  npm run demo -- destroy   deletes all resources of the stack
  ${service("ls")}   lists what the service holds; also status, logs
  npm run demo -- stop      stops the service`,
    preview: unchanged
      ? "There is nothing to apply: edit examples/quickstart/index.ts, then npm run demo -- preview"
      : "To apply these changes: npm run demo",
    refresh: unchanged
      ? "The service has what the stack has: there is nothing to bring back."
      : "To bring back what differs: npm run demo",
    destroy:
      "The stack and the service are still there: npm run demo creates everything again, npm run demo -- stop stops the service.",
  };
  return hints[command];
}
