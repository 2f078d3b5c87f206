// Machines that cannot run: each fails with its reason at its own resource, and the next `up` continues.
import { describe, expect, inject, test } from "vitest";
import { expectUnchanged } from "../support/invariants.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { counts, errorsOf, Stack } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image } from "./image.ts";
import { startReal } from "./real.ts";
import { hasEngine } from "./runtimes.ts";

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const image = settings.require("image");
const isBroken = settings.requireBoolean("broken");
const app = new machines.App("web", { name: "web" });
const checks = { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s" } } as const;
const machine = (name: string, broken: object, right: object = {}, create = "10m", minHealthySeconds = 0) =>
  new machines.Machine(
    name,
    { app: app.id, region: "ams", config: { image, ...(isBroken ? broken : right) }, minHealthySeconds },
    { customTimeouts: { create } },
  );
const behaving = (how: string) => ({ env: { MACHINES_SIMULATE: how } });
machine("crashing", { ...behaving("crash"), checks }, { checks });
// Long enough for a container and its first check on a busy computer.
machine("deaf", { init: { exec: ["sleep", "1000"] }, checks }, { checks }, "30s");
machine("large", { guest: { cpuKind: "performance", cpus: 16, memoryMb: 131072 } });
// It is killed before its check runs for the first time.
const late = { alive: { ...checks.alive, gracePeriod: "1m" } };
machine("hungry", { ...behaving("oom"), checks: late, restart: { policy: "on-failure", maxRetries: 1 } }, { checks });
// Without checks, and started again after each end: only its events show that it does not keep running (F51).
const exec = ["sh", "-c", "echo cannot read config; exit 3"];
machine("ending", { init: { exec }, restart: { policy: "always" } }, {}, "10m", 3);
machine("missing", { init: { exec: ["no-such-program"] }, checks }, { checks });
`;

describe.runIf(hasEngine)("Machines that cannot run", () => {
  test("each resource reports its reason, and the next up continues", async () => {
    const real = await startReal();
    afterThisTest(() => real.end());
    const stack = new Stack(inject("installed"), "failures");
    stack.program(program);
    const { url, token } = real.service;
    await stack.init({ "machines:endpoint": url, "machines:token": token, image, broken: "true" });
    // Otherwise the engine begins none after the first failure, which may come early on a busy computer.
    const errors = errorsOf(await stack.fails("up", "--yes", "--skip-preview", "--continue-on-error"));
    expect(errors).toMatchObject({
      // It may have been started again by then.
      crashing: expect.stringMatching(
        /Machine web\/\w+ (is \w+ and not started|did not keep running): its main process exited \(code 1\)/,
      ),
      deaf: expect.stringMatching(
        /checks of Machine \w+ did not pass within 30s: alive is critical \(connection refused\)\. The next up continues from here\./,
      ),
      large: expect.stringMatching(
        /invalid config\.guest\.memory_mb, the docker runtime runs on a computer with \d+ MB of memory, and 131072 MB are requested/,
      ),
      hungry: expect.stringMatching(/its main process exited \(code 137, out of memory\)/),
      ending: expect.stringMatching(
        /its main process exited \(code 3\).*\n\s*Its program wrote last:\s+cannot read config/s,
      ),
      missing: expect.stringMatching(
        /its main process exited \(code 127, exec no-such-program failed: No such file or directory\)/,
      ),
    });
    await stack.set({ broken: "false" });
    // Only the one that was refused does not exist yet.
    expect(counts(await stack.up())).toEqual({ created: 1, updated: 5, unchanged: 2 });
    await expectUnchanged(stack);
    await stack.destroy();
    await expectNothingRuns(real.dataId);
  });
});
