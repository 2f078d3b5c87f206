// Tests of `npm run test:all` alone (CONTRIBUTING.md#tests).
import { test, type TestFunction } from "vitest";
import { isThorough } from "./extent.mts";

/** A test that `npm test` leaves out: another one proves the same in a shorter run, or in process. */
export const thoroughTest: (name: string, body: TestFunction) => void = isThorough ? test : () => undefined;
