// Terminals in containers, by the WebSocket that the console and the command use.
import { describe, expect, test } from "vitest";
import { openTerminal, terminalPath } from "../support/terminalClient.ts";
import { thoroughTest } from "../support/thorough.ts";
import { hasShells } from "./shellFiles.ts";
import { shellImage } from "./shellImage.ts";
import { hasEngine, withRuntime } from "./runtimes.ts";

const image = await (hasEngine && hasShells ? shellImage("machines-test/shells:1") : "");

/** A Machine with shells, and its terminals. */
async function machineWith(config: object = {}, options: object = {}) {
  const app = await withRuntime("docker", options);
  const id = await app.create({ image, ...config });
  await app.reaches(id, "started");
  return { app, id, open: (first: object = {}) => openTerminal(app, terminalPath(id), first) };
}

describe.runIf(hasEngine && hasShells)("a terminal in a container", () => {
  test("is a bash with a size, keeps its folder, is interrupted by Ctrl-C, and ends with its exit code", async () => {
    const { open } = await machineWith();
    const terminal = await open({ columns: 91, rows: 31 });
    terminal.type("stty size; echo $TERM $BASH_VERSION; tty() { [ -t 0 ] && echo is''atty; }; tty; pwd\r");
    await terminal.shows(/31 91\r\nxterm-256color 5[^\n]*\r\nisatty\r\n\/work\r\n/);
    terminal.resize(120, 40);
    // The engine gets sizes and keys on two ways, so the program looks until it has the new size.
    terminal.type("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.1; done; echo wi''de\r");
    await terminal.shows("wide\r\n");
    terminal.type("cd /tmp\r");
    terminal.type("pwd\r");
    await terminal.shows(/[\r\n]\/tmp\r\n/);
    terminal.type("echo begin''s; sleep 1000\r");
    await terminal.shows("begins");
    terminal.type("\x03");
    // What is typed at the same moment would be lost, as in every terminal.
    await terminal.shows(/\^C[^]*# $/);
    terminal.type("echo after''wards $?\r");
    await terminal.shows("afterwards 130");
    terminal.type("exit 7\r");
    expect(await terminal.ended()).toEqual({ code: 1000, last: { exit: 7 } });
  });

  thoroughTest("shows full-screen programs, also at another size", async () => {
    const { open } = await machineWith();
    const terminal = await open();
    terminal.type("seq 1000 > /tmp/numbers; less /tmp/numbers\r");
    // The other screen of the terminal, and the first page.
    await terminal.shows(/\x1b\[\?1049h[^]*\b23\r?\n/);
    terminal.resize(80, 11);
    // A program that redraws its screen may drop keys that are typed meanwhile.
    await terminal.shows(/\b10\r?\n:/);
    terminal.type("G");
    await terminal.shows(/\b991\r?\n[^]*1000/);
    terminal.type("q");
    await terminal.shows("\x1b[?1049l");
    terminal.type("exit\r");
    expect((await terminal.ended()).last).toEqual({ exit: 0 });
  });

  thoroughTest("runs a command instead of a shell, and says if there is none of its name", async () => {
    const { open } = await machineWith();
    const one = await open({ command: ["sh", "-c", 'echo "$1"; exit 3', "sh", "two words"] });
    expect((await one.ended()).last).toEqual({ exit: 3 });
    expect(one.shown()).toBe("two words\r\n");
    const none = await open({ command: ["no-such-program"] });
    expect((await none.ended()).last).toEqual({ exit: 127 });
    expect(none.shown()).toContain("no-such-program");
  });

  test("ends everything in it when its client goes", async () => {
    const { app, id, open } = await machineWith();
    const terminal = await open();
    // The first one ends by the signal of a terminal that is gone, the others ignore it.
    terminal.type("sleep 101 & (trap '' HUP; sleep 102) & trap '' HUP; echo be''gun; sleep 103\r");
    await terminal.shows("begun");
    const sleeps = async (): Promise<readonly string[]> =>
      (await app.call("GET", `${app.machines}/${id}/ps`)).body
        .map(({ command }: { command: string }) => command)
        .filter((command: string) => /sleep 10\d$|bash/.test(command));
    expect((await sleeps()).length).toBeGreaterThanOrEqual(3);
    terminal.socket.terminate();
    await expect.poll(sleeps).toEqual([]);
    expect(await app.state(id)).toBe("started");
  });

  thoroughTest("waits for a client that reads nothing, and shows everything to one that reads", async () => {
    const { open } = await machineWith();
    const terminal = await open({ command: ["sh", "-c", "echo begins; read x; yes $(seq 1000)"] });
    await terminal.shows("begins");
    terminal.type("\r");
    terminal.socket.pause();
    const before = process.memoryUsage().arrayBuffers;
    // Others are served meanwhile, and it has written much if nothing stops it.
    const other = await open({
      command: ["sh", "-c", "yes | { i=0; while [ $i -lt 20000 ]; do read -r x; i=$((i+1)); done; }"],
    });
    expect((await other.ended()).last).toEqual({ exit: 0 });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * 2 ** 20);
    const read = terminal.bytes();
    terminal.socket.resume();
    await expect.poll(() => terminal.bytes() - read).toBeGreaterThan(8 * 2 ** 20);
    terminal.type("\x03");
    expect((await terminal.ended()).last).toEqual({ exit: 130 });
  });

  thoroughTest("says when its Machine has stopped, and when the service ends", async () => {
    const { app, id, open } = await machineWith();
    const first = await open();
    await expect.poll(() => first.said).toEqual([{ opened: true }]);
    await app.post(id, "stop");
    expect((await first.ended()).last).toEqual({
      problem: expect.stringMatching(/^failed_precondition: machine is not started, currently stop/),
    });
    await app.reaches(id, "stopped");
    await app.post(id, "start");
    await app.reaches(id, "started");
    const second = await open();
    await expect.poll(() => second.said).toEqual([{ opened: true }]);
    await app.service.close();
    expect(await second.ended()).toEqual({ code: 1001, last: { problem: "the service ends" } });
  });

  thoroughTest("needs a shell in the image, and uses sh if there is no bash", async () => {
    const app = await withRuntime("docker");
    const none = await app.create({ image: await shellImage("machines-test/no-shell:1", ["sleep"]) });
    const plain = await app.create({ image: await shellImage("machines-test/sh:1", ["sleep", "sh"]) });
    for (const id of [none, plain]) await app.reaches(id, "started");
    const refused = await openTerminal(app, terminalPath(none));
    expect((await refused.ended()).last).toEqual({
      problem: "failed_precondition: a terminal needs sh, which the image of the machine does not have",
    });
    const terminal = await openTerminal(app, terminalPath(plain));
    terminal.type("echo sh''ell $0\r");
    await terminal.shows("shell sh\r\n");
  });
});
