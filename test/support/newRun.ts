// Setup of every file of the unit tests. Each test is a run of the engine of its own, and what it started ends with it.
import { afterEach, beforeEach } from "vitest";
import { run } from "../../provider/dynamic/run.ts";
import { endLeftovers } from "./leftovers.ts";

beforeEach(() => run.begin());
afterEach(endLeftovers);
