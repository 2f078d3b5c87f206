// The plugin as one executable, on a computer without Node.js. The other files run on it too (vitest.config.mts).
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { expect, test } from "vitest";
import { drive, urnOf } from "../support/driver.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { executable, startPlugin, type Client } from "../support/plugin.ts";
import { secret, toStruct } from "../support/properties.ts";
import { startService } from "../support/startService.ts";

const root = join(__dirname, "../..");
const schema = readFileSync(join(root, "provider/dist/schema.json"), "utf8");

const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), "machines-standalone-"));
  afterThisTest(() => rm(made, { recursive: true, force: true }));
  return made;
};

/** A PATH with some commands of this computer. */
const pathWith = (...commands: string[]): string => {
  const bin = folder();
  for (const command of commands) symlinkSync(command, join(bin, command.slice(command.lastIndexOf("/") + 1)));
  return bin;
};

const createApp = async (client: Client, settings: Readonly<Record<string, unknown>>): Promise<string> => {
  await client.configure(new proto.ConfigureRequest().setArgs(toStruct(settings)));
  const app = drive(client, urnOf("App", "shop"));
  return (await app.create(await app.checked({ name: "shop" }))).id;
};

test("alone in a folder, without Node.js on PATH, it has its schema and sends requests", async () => {
  const service = await startService();
  afterThisTest(() => service.close());
  const alone = join(folder(), "pulumi-resource-machines");
  cpSync(executable, alone);
  const plugin = await startPlugin({ command: [alone], env: { PATH: pathWith() } });
  afterThisTest(() => plugin.close());
  expect((await plugin.client.getSchema(new proto.GetSchemaRequest())).getSchema()).toBe(schema);
  expect(await createApp(plugin.client, { endpoint: service.url, token: secret(service.token) })).toBe("shop");
  expect(plugin.written.stderr).toBe("");
});

test("options of V8 in NODE_OPTIONS, which its compiled code does not fit, print nothing", async () => {
  const plugin = await startPlugin({ env: { NODE_OPTIONS: "--stack-trace-limit=0" } });
  await plugin.close();
  expect(plugin.written.stderr).toBe("");
});

test.each(["--version", "-version"])("%s prints the version and ends, as with the script", async (flag) => {
  const { version } = JSON.parse(schema) as { version: string };
  for (const command of [executable, join(root, "pulumi-resource-machines")])
    expect((await promisify(execFile)(command, [flag])).stdout).toBe(`${version}\n`);
});

test("the script says what is missing if there is no Node.js", async () => {
  const copy = join(folder(), "plugin");
  cpSync(join(root, "sdk/nodejs-plugin/plugin"), copy, { recursive: true });
  const env = { PATH: pathWith("/usr/bin/dirname", "/usr/bin/readlink") };
  const started = promisify(execFile)(join(copy, "pulumi-resource-machines"), [], { env });
  await expect(started).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^pulumi-resource-machines needs Node.js 22.19 or later, and there is no `node` on PATH: .*\n$/,
    ),
  });
});

test("machines:endpoint local without Node.js says in one sentence that the service needs it", async () => {
  const bin = pathWith("/usr/bin/env");
  writeFileSync(join(bin, "machines-service"), "#!/usr/bin/env node\n");
  chmodSync(join(bin, "machines-service"), 0o755);
  const plugin = await startPlugin({ env: { PATH: bin, MACHINES_SERVICE_DATA: folder() } });
  afterThisTest(() => plugin.close());
  await expect(createApp(plugin.client, { endpoint: "local" })).rejects.toThrow(
    /machines:endpoint is "local", but the embedded service needs Node.js 22.19 or later, and there is no `node` on PATH: install it/,
  );
});

test("machines:endpoint local starts the service of the project's packages on the Node.js on PATH", async () => {
  const [project, main] = [folder(), join(root, "service/dist/service/main.js")];
  // As npm installs it.
  mkdirSync(join(project, "node_modules/.bin"), { recursive: true });
  symlinkSync(join(root, "service"), join(project, "node_modules/machines-service"));
  symlinkSync(main, join(project, "node_modules/.bin/machines-service"));
  chmodSync(main, 0o755);
  const data = join(project, "data");
  mkdirSync(data);
  const bin = pathWith("/usr/bin/env", process.execPath);
  const plugin = await startPlugin({
    command: ["/bin/sh", "-c", 'cd "$0" && exec "$@"', project, executable],
    env: { PATH: bin, MACHINES_SERVICE_DATA: data },
  });
  afterThisTest(() => plugin.close());
  try {
    expect(await createApp(plugin.client, { endpoint: "local" })).toBe("shop");
  } finally {
    execFileSync(process.execPath, [main, "stop", "--data", data]);
  }
});
