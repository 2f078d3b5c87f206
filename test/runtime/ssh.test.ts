// The command ssh, in a terminal of this computer.
import { spawn } from "node:child_process";
import { expect, describe, test } from "vitest";
import { serviceMain } from "../support/built.ts";
import { caller } from "../service/client.ts";
import { command, folder, foreground } from "../service/command.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { removeStored } from "./cleaning.ts";
import { hasEngine } from "./runtimes.ts";
import { hasShells } from "./shellFiles.ts";
import { shellImage } from "./shellImage.ts";

// A terminal with a size, whose settings are printed before and after.
const inTerminal = "stty cols 77 rows 22; stty -g; $RUN; echo code=$?; stty -g";

describe.runIf(hasEngine && hasShells)("the command ssh", () => {
  test("is a terminal of the size of this one, ends with the code of the program, and restores this one", async () => {
    const data = folder();
    afterThisTest(() => removeStored(data));
    const { url, token, pid, end } = await foreground(data, ["--runtime", "docker", "--http", "0", "--https", "0"]);
    afterThisTest(async () => {
      process.kill(pid, "SIGTERM");
      await end;
    });
    const call = caller(url, token);
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    const image = await shellImage("machines-test/shells:1");
    const create = async (name: string): Promise<string> => {
      const { body } = await call("POST", "/apps/web/machines", { name, config: { image } });
      await expect.poll(async () => (await call("GET", `/apps/web/machines/${body.id}`)).body.state).toBe("started");
      return body.id;
    };
    expect((await command(["ssh", "web", "--data", data])).err).toContain("App web has no started Machine");
    const one = await create("one");
    const run = [process.execPath, serviceMain, "--data", data, "ssh", "web"].join(" ");
    const local = spawn("script", ["-qec", inTerminal, "/dev/null"], {
      env: { ...process.env, RUN: run, SHELL: "/bin/sh", TERM: "xterm" },
    });
    afterThisTest(() => void local.kill());
    let shown = "";
    local.stdout.on("data", (part: Buffer) => (shown += part.toString()));
    await expect.poll(() => shown).toContain("bash-");
    local.stdin.write("stty size; cd /tmp\r");
    await expect.poll(() => shown).toMatch(/22 77/);
    local.stdin.write("pwd\r");
    await expect.poll(() => shown).toMatch(/[\r\n]\/tmp\r+\n/);
    // Ctrl-C is for the program there.
    local.stdin.write("sleep 1000\r");
    await expect.poll(() => shown).toContain("sleep 1000");
    local.stdin.write("\x03");
    await expect.poll(() => shown).toMatch(/\^C[^]*# $/);
    local.stdin.write("exit 9\r");
    await expect.poll(() => shown).toContain("code=9");
    const settings = [...shown.matchAll(/^[\da-f]+(?::[\da-f]+){10,}/gm)].map(([text]) => text);
    expect(settings).toHaveLength(2);
    expect(settings[1]).toBe(settings[0]);

    await create("two");
    expect((await command(["ssh", "web", "--data", data])).err).toContain("App web has several started Machines");
    const words = ["--data", data, "ssh", "web", one, "--", "sh", "-c", "echo $((6 * 7)); exit 4"];
    expect(await command(words)).toMatchObject({ code: 4, out: "42\r\n" });
    expect(await command(["ssh", "web", "tow", "--data", data])).toMatchObject({
      code: 1,
      err: "machines-service: App web has no Machine tow; did you mean two?\n",
    });
    const listed = (await command(["token", "ls", "--data", data])).out;
    expect(listed).not.toContain("machines-service ssh");
  });
});
