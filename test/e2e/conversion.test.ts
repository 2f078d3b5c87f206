// A deployment file as a program, with the packed command, the packed converter and the real CLI.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { Stack } from "../support/stack.ts";
import { startService } from "../support/startService.ts";

const deployment = join(__dirname, "../cli/conversion/files/rails-sidekiq.toml");

test("a converted deployment file previews, runs, has no second change, and is destroyed", async () => {
  const service = await startService();
  const installed = inject("installed");
  const stack = new Stack(installed, "conversion", "pulumi-machines-plugin");
  await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  cpSync(deployment, join(stack.dir, "fly.toml"));
  const printed = await new Promise<string>((resolve, reject) => {
    const command = join(installed, "node_modules/.bin/pulumi-machines");
    execFile(command, ["convert"], { cwd: stack.dir, env: stack.env }, (error, out, err) =>
      error === null ? resolve(out + err) : reject(new Error(err)),
    );
  });
  expect(printed).toContain("Written: index.ts\n");
  expect(printed).toContain("pulumi config set image");
  stack.checkTypes();
  await stack.set({ image: "registry.example.com/ledger:1" });
  await stack.up();
  const machines = await send<{ name: string }[]>(service, "GET", "/v1/apps/ledger/machines");
  expect(machines.map(({ name }) => name).sort()).toEqual(["web-iad-1", "worker-iad-1"]);
  expect(await stack.preview()).toEqual({});
  await stack.destroy();
  await service.close();
});

test("pulumi convert writes the program in PCL, which Pulumi's own binder accepts", async () => {
  const installed = inject("installed");
  const stack = new Stack(installed, "converter", "pulumi-machines-plugin");
  // A folder without a project, as before a conversion.
  const folder = mkdtempSync(join(installed, "deployment-"));
  cpSync(deployment, join(folder, "fly.toml"));
  const bin = join(installed, "node_modules/.bin");
  const env = { PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` };
  const convert = (...args: string[]) =>
    stack.run(["--cwd", folder, "convert", "--from", "machines-toml", "--language", "pcl", ...args], {
      env,
      plain: true,
    });
  const { code, output } = await convert("--strict", "--out", join(folder, "pcl"), "--", "--regions", "ams:2");
  expect(output).toContain("fly.toml:7,1-1: build.dockerfile; a Pulumi program does not build images");
  expect(code).toBe(0);
  const text = readFileSync(join(folder, "pcl/main.pp"), "utf8");
  expect(text).toContain('resource "worker" "machines:index:Fleet" {');
  expect(text).toContain("dependsOn = [web]");
  const refused = await convert("--out", join(folder, "none"), "--", "absent.toml");
  expect(refused.code).not.toBe(0);
  expect(refused.output).toContain("ENOENT");
});
