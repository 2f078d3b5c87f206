// Setup of the specification tests on containers: leaves out the exceptions, and refuses a list of them that is out of date.
import { existsSync } from "node:fs";
import { basename, join, sep } from "node:path";
import { beforeEach, inject, type RunnerTask, type RunnerTestFile } from "vitest";
import { exceptionsOf, filesWithExceptions, isNamed } from "./simulatedOnly.ts";

const folder = join("test", "service", "spec");
const host = inject("engine");
if (host !== undefined) process.env["DOCKER_HOST"] = host;

const nameOf = (path: string): string => basename(path, ".test.ts");

const testsIn = (tasks: readonly RunnerTask[]): string[] =>
  tasks.flatMap((task) => (task.type === "suite" ? testsIn(task.tasks) : [task.name]));

/** Names of the list that no test has any more. */
function outdated({ filepath, tasks }: RunnerTestFile): string[] {
  const tests = testsIn(tasks);
  return [
    ...filesWithExceptions.filter((file) => !existsSync(join(folder, `${file}.test.ts`))),
    ...exceptionsOf(nameOf(filepath))
      .map(({ name }) => name)
      .filter((name) => !tests.some((test) => isNamed(test, name))),
  ];
}

beforeEach(({ task, skip }) => {
  const { file } = task;
  if (!file.filepath.includes(`${sep}${folder}${sep}`)) return;
  if (host === undefined) skip("there is no engine");
  const old = outdated(file);
  if (old.length > 0) throw new Error(`simulatedOnly.ts names what is not in test/service/spec: ${old.join("; ")}`);
  const exception = exceptionsOf(nameOf(file.filepath)).find(({ name }) => isNamed(task.name, name));
  if (exception) skip(exception.because);
});
