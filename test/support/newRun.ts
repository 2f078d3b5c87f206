// What one run of the engine has said is forgotten before every test: each of them is a run of its own.
import { beforeEach } from "vitest";
import { run } from "../../provider/dynamic/run.ts";

beforeEach(() => run.begin());
