// Setup of every unit test file. Each test is a separate run of the engine, and what it started ends with it.
import { afterAll, afterEach, beforeEach } from "vitest";
import { runs } from "../../provider/dynamic/run.ts";
import { endFile, endLeftovers } from "./leftovers.ts";

beforeEach(() => runs.begin());
afterEach(endLeftovers);
afterAll(endFile);
