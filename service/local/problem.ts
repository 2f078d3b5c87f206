// Errors that the user of a command can fix.

/** An error that the user can fix; its message is one sentence with the cause and the remedy. */
export class Problem extends Error {
  override readonly name = "Problem";
}
