// The same tests run on the simulated runtime and on containers.
import { describeRuntime } from "./conformance.ts";
import { runtimes, withRuntime } from "./runtimes.ts";

for (const name of runtimes) describeRuntime(name, () => withRuntime(name));
