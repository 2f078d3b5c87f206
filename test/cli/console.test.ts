// `pulumi-machines console`: which service it opens, and how it signs in there.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { browser, sessionOf, signIn } from "../service/console/browser.ts";
import { command as serviceCommand, folder as dataFolder } from "../service/command.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { answeringCli } from "./answeringCli.ts";
import { command, type Ran } from "./command.ts";

const repository = join(__dirname, "../..");
const withToken = "Sign in there with an access token of the service.\n";

let folder = "";
let data = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-console-"));
  data = dataFolder();
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
});

/** A folder with the commands of Node.js and of the service, or without the latter. */
function commands(...names: readonly string[]): string {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, "node"));
  const main = join(repository, "service/dist/service/main.js");
  for (const name of names) writeFileSync(join(bin, name), `#!/bin/sh\nexec node '${main}' "$@"\n`, { mode: 0o755 });
  return [bin, "/usr/bin", "/bin"].join(delimiter);
}

/** The service as a package of the project in the folder. */
function installPackage(): void {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(repository, "service"), join(folder, "node_modules/machines-service"));
}

/** Runs the command in the folder; without an endpoint in the environment, unless one is given. */
const open = (env: Readonly<Record<string, string>> = {}, ...more: readonly string[]): Promise<Ran> =>
  command({ url: "", token: "" }, ["console", ...more], {
    cwd: folder,
    env: { MACHINES_SERVICE_DATA: data, MACHINES_TOKEN: "", ...env },
  });

/** Opens a session with the code of an address that was printed. */
async function whoOpens({ code, out, err }: Ran): Promise<unknown> {
  expect([code, err]).toEqual([0, ""]);
  const link = new URL(out.trim());
  const answer = await signIn(link.origin, { code: link.hash.replace("#code=", "") });
  return (await browser(link.origin, sessionOf(answer))("GET", "/console/session")).body;
}

const operator = expect.objectContaining({ organization: "personal", isOperator: true });

test("without a project it starts the local service, and signs in", async () => {
  installPackage();
  expect(await whoOpens(await open())).toEqual(operator);
  const { url } = JSON.parse((await serviceCommand(["status", "--json", "--data", data])).out) as { url: string };
  // The endpoint is this service, by either of its names.
  for (const endpoint of [url, url.replace("127.0.0.1", "localhost")])
    expect(await whoOpens(await open({ MACHINES_ENDPOINT: endpoint }))).toEqual(operator);
});

test("without the package it uses the command on PATH", async () => {
  const env = { PATH: commands("machines-service") };
  expect(await whoOpens(await open(env))).toEqual(operator);
  const { url } = JSON.parse((await serviceCommand(["status", "--json", "--data", data])).out) as { url: string };
  expect(await whoOpens(await open({ ...env, MACHINES_ENDPOINT: url }))).toEqual(operator);
});

test("a running service that is not installed here is opened without a code", async () => {
  const env = { PATH: commands() };
  expect((await open(env)).err).toContain("no embedded service is installed or running");
  await serviceCommand(["start", "--detach", "--listen", "127.0.0.1:0", "--data", data]);
  const { url } = JSON.parse((await serviceCommand(["status", "--json", "--data", data])).out) as { url: string };
  expect(await open(env)).toEqual({ code: 0, out: `${url}/\n`, err: withToken });
});

test.each([["the package"], ["the command"]])(
  "a service elsewhere is opened without a code, with %s",
  async (installed) => {
    if (installed === "the package") installPackage();
    const PATH = commands("machines-service");
    const elsewhere = { MACHINES_ENDPOINT: "https://machines.example.com/v1", PATH };
    const opened = { code: 0, out: "https://machines.example.com/\n", err: withToken };
    expect(await open(elsewhere)).toEqual(opened);
    await serviceCommand(["start", "--detach", "--listen", "127.0.0.1:0", "--data", data]);
    expect(await open(elsewhere)).toEqual(opened);
  },
);

test("in a project it is the service of the stack; -C names its folder", async () => {
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  const stacks = {
    prod: { config: { "machines:endpoint": { value: "https://prod.example.com" } } },
    bad: { config: { "machines:endpoint": { value: "prod.example.com" } } },
    none: {},
  };
  const PATH = commands("machines-service");
  writeFileSync(join(folder, "bin/pulumi"), answeringCli, { mode: 0o755 });
  writeFileSync(join(folder, "bin/stacks.json"), JSON.stringify(stacks));
  mkdirSync(join(folder, "src"));
  expect((await open({ PATH }, "--stack", "prod", "-C", "src")).out).toBe("https://prod.example.com/\n");
  expect(await open({ PATH }, "--stack", "bad")).toMatchObject({
    code: 2,
    err: expect.stringContaining('machines:endpoint: got "prod.example.com"; must begin with http:// or https://'),
  });
  expect((await open({ PATH }, "--stack", "none")).err).toContain("no endpoint: set the service's base URL");
  expect((await open({ PATH, MACHINES_ENDPOINT: "https://dev.example.com" }, "--stack", "none")).out).toBe(
    "https://dev.example.com/\n",
  );
});

test.each([["the package"], ["the command"]])(
  "a local service without a console is one sentence, with %s",
  async (installed) => {
    if (installed === "the package") installPackage();
    const PATH = commands("machines-service");
    await serviceCommand(["start", "--detach", "--listen", "127.0.0.1:0", "--data", data, "--console", "off"]);
    const { code, out, err } = await open({ PATH });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(/^pulumi-machines: .*the service at http:\/\/127\.0\.0\.1:\d+ has no console.*\n$/);
  },
);
