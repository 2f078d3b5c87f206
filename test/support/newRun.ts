// What every file of the unit tests begins with. What one run of the engine has said is forgotten before every test: each of
// them is a run of its own. What a test started is ended after it.
import { afterEach, beforeEach } from "vitest";
import { forgetAll } from "../../provider/core/run.ts";
import { endLeftovers } from "./leftovers.ts";

beforeEach(() => forgetAll());
afterEach(endLeftovers);
