// The list of processes that a shell of an image writes, and the process in it that gets the signals.
import { execFileSync, spawn } from "node:child_process";
import { expect, test } from "vitest";
import { listProcesses, mainOf, parseProcesses } from "../../service/runtime/kubernetes/processes.ts";
import { afterThisTest } from "../support/leftovers.ts";

const onLinux = test.runIf(process.platform === "linux");

const listed = () => parseProcesses(execFileSync("sh", ["-c", listProcesses], { encoding: "utf8" }));

onLinux("processes have their command, parent and memory", () => {
  const one = listed().find(({ pid }) => pid === process.pid);
  expect(one).toMatchObject({ parent: process.ppid, listen_sockets: [] });
  expect(one?.command).toContain("node");
  expect(one?.rss).toBeGreaterThan(2 ** 20);
});

onLinux("a command may contain spaces, brackets and ends of lines", () => {
  const child = spawn("sleep", ["60"], { argv0: "a) R 1\n2 (b", stdio: "ignore" });
  afterThisTest(() => void child.kill());
  expect(listed().find(({ pid }) => pid === child.pid)).toMatchObject({
    command: "a) R 1\n2 (b 60",
    parent: process.pid,
  });
});

onLinux("the shell that writes the list is not in it", () => {
  expect(listed().filter(({ command }) => command.includes("VmRSS"))).toEqual([]);
});

/** The entry of a process in the list. */
const entry = (pid: number, parent: number, begun: number, name = "app", words = "app\0") =>
  `100 ${pid} (${name}) S ${parent} ${"0 ".repeat(9)}150 50 ${"0 ".repeat(5)}2 ${begun} 0\n${words}\0\0\n`;

test("the main process is the first one that the cluster started after its own", () => {
  const text = [
    "100.0 40\0\0\n",
    entry(30, 0, 900),
    entry(1, 0, 1),
    entry(9, 7, 2),
    entry(7, 0, 500),
    entry(40, 0, 950),
  ];
  const processes = parseProcesses(text.join(""));
  expect(processes.map(({ pid }) => pid)).toEqual([30, 1, 9, 7]);
  expect(mainOf(processes)).toMatchObject({ pid: 7, cpu: 2, stime: 2, rss: 102_400 });
});

test("a process that has ended has its name in brackets", () => {
  expect(parseProcesses(`100.0 40\0\0\n${entry(8, 7, 600, "a (b)", "")}`)).toMatchObject([{ command: "[a (b)]" }]);
});
