// Tests of `npm run test:all` alone (CONTRIBUTING.md#tests).
import { describe, test, type TestFunction } from "vitest";
import { isThorough } from "./extent.mts";

/** A test that `npm test` leaves out: another one proves the same in a shorter run, or in process. */
export const thoroughTest: (name: string, body: TestFunction, timeout?: number) => void = isThorough
  ? test
  : () => undefined;

/** The same for several tests with what they share. */
export const thoroughDescribe: (name: string, body: () => void) => void = isThorough ? describe : () => undefined;
