/** Something whoever runs the command can put right; the message is one sentence that says what and how. */
export class Problem extends Error {
  override readonly name = "Problem";
}
