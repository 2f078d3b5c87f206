// How much the tests try: a sample in `npm test`, everything in `npm run test:all` (CONTRIBUTING.md#tests). No other file
// asks for the environment variable that says which.

/** Whether everything is tried. */
export const isThorough = process.env["PULUMI_MACHINES_TEST_ALL"] === "1";

/** All of them, or the sample alone. */
export function allOr<T>(all: readonly T[], sample: readonly T[]): readonly T[] {
  return isThorough ? all : sample;
}
