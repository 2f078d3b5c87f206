// Specification tests that run on another engine or runtime too: leaves out the exceptions, each with its reason, and refuses a
// list of them that is out of date.
import { existsSync } from "node:fs";
import { basename, join, sep } from "node:path";
import { beforeEach, type RunnerTask, type RunnerTestFile } from "vitest";

/** A reason, and the names of tests by their file. A name that ends in … stands for all that begin so. */
export interface Exceptions {
  readonly because: string;
  readonly tests: Readonly<Record<string, readonly string[]>>;
}

const folder = join("test", "service", "spec");

const nameOf = (path: string): string => basename(path, ".test.ts");

const testsIn = (tasks: readonly RunnerTask[]): string[] =>
  tasks.flatMap((task) => (task.type === "suite" ? testsIn(task.tasks) : [task.name]));

const isNamed = (test: string, name: string): boolean =>
  name.endsWith("…") ? test.startsWith(name.slice(0, -1)) : test === name;

/** Leaves the exceptions out, or all of them for a reason. `list` is the file that has the exceptions. */
export function leaveOutExceptions(exceptions: readonly Exceptions[], list: string, reason?: string): void {
  const exceptionsOf = (file: string) =>
    exceptions.flatMap(({ because, tests }) => (tests[file] ?? []).map((name) => ({ name, because })));
  /** Names of the list that no test has any more. */
  const outdated = ({ filepath, tasks }: RunnerTestFile): string[] => {
    const tests = testsIn(tasks);
    return [
      ...exceptions
        .flatMap((one) => Object.keys(one.tests))
        .filter((file) => !existsSync(join(folder, `${file}.test.ts`))),
      ...exceptionsOf(nameOf(filepath))
        .map(({ name }) => name)
        .filter((name) => !tests.some((test) => isNamed(test, name))),
    ];
  };
  beforeEach(({ task, skip }) => {
    const { file } = task;
    if (!file.filepath.includes(`${sep}${folder}${sep}`)) return;
    if (reason !== undefined) skip(reason);
    const old = outdated(file);
    if (old.length > 0) throw new Error(`${list} names what is not in test/service/spec: ${old.join("; ")}`);
    const exception = exceptionsOf(nameOf(file.filepath)).find(({ name }) => isNamed(task.name, name));
    if (exception) skip(exception.because);
  });
}
