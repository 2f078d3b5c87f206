// The image of the tests.

/** Its name; only the engine has it. */
export const image = "machines-test/app:1";

/** Its next version. */
export const nextImage = "machines-test/app:2";

/** The commands in it (app/main.go). */
export const commands = [
  "echo",
  "env",
  "true",
  // The release command of examples/bluegreen.
  "migrate",
  "false",
  "sleep",
  "exit",
  "hostname",
  "cat",
  "write",
  "mode",
  "count",
  "lookup",
  "get",
  "sql",
  "kill",
  // The migration of examples/database.
  "sh",
  // Of the attacks on containers (app/attack.go).
  "attack",
  "usual",
];
