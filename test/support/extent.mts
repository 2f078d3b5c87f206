// How much the tests cover: a sample in `npm test`, everything in `npm run test:all` (CONTRIBUTING.md#tests). Only this
// file reads the environment variables for that.

/** Whether everything is tested. */
export const isThorough = process.env["PULUMI_MACHINES_TEST_ALL"] === "1";

/** All of them, or only the sample. */
export function allOr<T>(all: readonly T[], sample: readonly T[]): readonly T[] {
  return isThorough ? all : sample;
}

/** Whether the runtime is tested on a Kubernetes cluster, by `npm run test:kubernetes`. */
export const withKubernetes = process.env["PULUMI_MACHINES_TEST_KUBERNETES"] === "1";
