// Terminals in Pods, on a node that really runs them.
import { describe, expect, inject, test } from "vitest";
import { hasShells } from "../runtime/shellFiles.ts";
import { image } from "../runtime/image.ts";
import { openTerminal, terminalPath } from "../support/terminalClient.ts";
import { onCluster } from "./clusters.ts";
import { realRegion, shellsOnNode } from "./nodes.ts";

/** A Machine with shells, and its terminals. */
async function machine() {
  const app = await onCluster({ nearest: realRegion });
  const id = await app.create({ image: shellsOnNode });
  await app.reaches(id, "started");
  const open = (first: object = {}, options: object = {}) => openTerminal(app, terminalPath(id), first, options);
  /** The commands that run in the Machine. */
  const commands = async (): Promise<string> =>
    (await app.call("GET", `${app.machines}/${id}/ps`)).body
      .map(({ command }: { command: string }) => command)
      .join("\n");
  return { app, id, open, commands };
}

describe.runIf(inject("hasRealNode") && hasShells)("a terminal in a Pod", () => {
  test("has a size, keeps its folder, is interrupted by Ctrl-C, and ends with its exit code", async () => {
    const { open } = await machine();
    const terminal = await open({ columns: 91, rows: 31 });
    terminal.type("pwd; cd /tmp; stty size; echo $TERM $BASH_VERSION\r");
    await terminal.shows(/\/work\r\n31 91\r\nxterm-256color 5/);
    terminal.resize(120, 40);
    // The cluster passes on sizes and keys apart, so the program looks until it has the new size.
    terminal.type("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.1; done; echo wi''de\r");
    await terminal.shows(/wide\r\n/);
    terminal.type("pwd\r");
    await terminal.shows(/[\r\n]\/tmp\r\n/);
    terminal.type("echo begin''s; sleep 1000\r");
    await terminal.shows("begins");
    terminal.type("\x03");
    await terminal.shows(/\^C[^]*# $/);
    terminal.type("exit 7\r");
    expect((await terminal.ended()).last).toEqual({ exit: 7 });
  });

  test("shows full-screen programs, and all that a program wrote before its end", async () => {
    const { open } = await machine();
    const terminal = await open();
    terminal.type("seq 1000 > /tmp/numbers; less /tmp/numbers\r");
    await terminal.shows(/\x1b\[\?1049h[^]*\b23\r?\n/);
    terminal.type("q");
    await terminal.shows("\x1b[?1049l");
    terminal.type("exit\r");
    expect((await terminal.ended()).last).toEqual({ exit: 0 });
    const long = await open({ command: ["sh", "-c", "seq 300000; exit 3"] });
    expect((await long.ended()).last).toEqual({ exit: 3 });
    expect(long.shown()).toMatch(/299999\r\n300000\r\n$/);
  });

  test("ends everything in it when its client goes, and needs a shell in the image", async () => {
    const { app, open, commands } = await machine();
    const terminal = await open();
    terminal.type("sleep 101 & (trap '' HUP; sleep 102) & trap '' HUP; echo be''gun; sleep 103\r");
    await terminal.shows("begun");
    await expect.poll(commands).toMatch(/sleep 103/);
    terminal.socket.terminate();
    await expect.poll(commands).not.toMatch(/sleep 10\d$|bash/m);
    const other = await app.create({ image, env: { PATH: "/nothing" } });
    await app.reaches(other, "started");
    const none = await openTerminal(app, terminalPath(other));
    expect((await none.ended()).last).toEqual({
      problem: expect.stringMatching("^failed_precondition: a terminal needs sh"),
    });
  });
});
