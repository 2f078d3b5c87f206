// How much the tests cover: a sample in `npm test`, everything in `npm run test:all` (CONTRIBUTING.md#tests). Only this
// file reads the environment variable for that.

/** Whether everything is tested. */
export const isThorough = process.env["PULUMI_MACHINES_TEST_ALL"] === "1";

/** All of them, or only the sample. */
export function allOr<T>(all: readonly T[], sample: readonly T[]): readonly T[] {
  return isThorough ? all : sample;
}
