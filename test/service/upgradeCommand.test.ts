// upgrade --check: what an upgrade would do, and what would prevent it.
import { createServer } from "node:http";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { firstSchema, migrations } from "../../service/store/schema.ts";
import { compareVersions, releaseBetween } from "../../service/releases.ts";
import { version } from "../../service/version.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { command, folder, foreground, start } from "./command.ts";
import { mountSmall } from "../support/smallDisk.ts";
import { plantedIn } from "./histories/bugs.ts";

const schema = firstSchema + migrations.length;

/** The environment of this command as another version, with these releases, and perhaps with other tables. */
const as = (other: string, releases: readonly string[], step?: string): NodeJS.ProcessEnv =>
  plantedIn([
    { find: `"${version}"`, replace: JSON.stringify(other) },
    { find: 'releases = ["0.1"]', replace: `releases = ${JSON.stringify(releases)}` },
    ...(step === undefined
      ? []
      : [
          {
            find: "const currentSchema = () => ",
            replace: `migrations.push(${JSON.stringify(step)});\nconst currentSchema = () => `,
          },
        ]),
  ]);
const step = "ALTER TABLE apps ADD COLUMN note TEXT";

/** A registry of npm with one package, or without it. Returns the variables that lead npm to it. */
async function registry(published?: { readonly version: string; readonly node: string }): Promise<NodeJS.ProcessEnv> {
  const server = createServer(({ url }, response) => {
    const isThere = published !== undefined && url === "/machines-service";
    const manifest = { name: "machines-service", version: published?.version, engines: { node: published?.node } };
    const found = {
      name: "machines-service",
      "dist-tags": { latest: published?.version },
      versions: { [published?.version ?? ""]: { ...manifest, dist: { tarball: "http://localhost/none.tgz" } } },
    };
    response.writeHead(isThere ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(isThere ? found : { error: "not found" }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  const cache = folder();
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { npm_config_registry: at, npm_config_cache: cache };
}

/** Runs the check, and returns its exit code, its answer, and its findings by what they are about. */
async function check(data: string, env: NodeJS.ProcessEnv) {
  const { code, out, err } = await command(["upgrade", "--check", "--json", "--data", data], {
    ...process.env,
    ...env,
  });
  if (err !== "") throw new Error(err);
  const { findings, ...rest } = JSON.parse(out) as {
    readonly findings: {
      readonly about: string;
      readonly state: string;
      readonly text: string;
      readonly advice?: string;
    }[];
  };
  return { code, rest, found: Object.fromEntries(findings.map(({ about, ...one }) => [about, one])) };
}

test("without a newer version, it says what restarts, and that nothing prevents an upgrade", async () => {
  const data = folder();
  await start(data);
  const env = await registry({ version, node: ">=22.19.0" });
  const { code, rest, found } = await check(data, env);
  expect([code, rest]).toEqual([0, { from: version, installed: version, published: version }]);
  expect(found).toMatchObject({
    version: { state: "ok", text: `${version} is the newest version` },
    tables: { state: "ok", text: `They stay as they are (schema ${schema}), so a return to ${version} needs no copy` },
    disk: { state: "ok", text: expect.stringMatching(/^The store has \d.* kB, and no copy of it is made$/) },
    backups: { state: "warning" },
    Machines: { state: "ok", text: "They are simulated, and keep their states" },
    requests: { state: "warning", text: expect.stringContaining("Connections are refused for a moment") },
  });
  const shown = await command(["upgrade", "--check", "--data", data], { ...process.env, ...env });
  expect(shown.out).toContain(`ok version: ${version} is the newest version\n`);
  await command(["stop", "--data", data]);
  expect((await check(data, env)).found).toMatchObject({
    service: { text: "It is not running, so nothing is interrupted" },
  });
});

test("a newer version on npm is named, with the command that checks with it, and needs its Node.js", async () => {
  const data = folder();
  const newer = await check(data, await registry({ version: "0.9.0", node: ">=22.19.0" }));
  expect([newer.code, newer.rest]).toEqual([0, { from: null, installed: version, published: "0.9.0" }]);
  expect(newer.found["version"]).toEqual({
    state: "warning",
    text: `0.9.0 is published, and this is ${version}`,
    advice: `Check with it, before it is installed: npx machines-service@0.9.0 upgrade --check --data ${data}`,
  });
  const { code, found } = await check(data, await registry({ version: "0.9.0", node: ">=99.0.0" }));
  expect([code, found["Node.js"]]).toEqual([
    1,
    {
      state: "problem",
      text: `machines-service 0.9.0 needs Node.js 99.0.0 or later, and this is ${process.versions.node}`,
      advice: "Install a newer Node.js first",
    },
  ]);
});

test("a registry without the package, and one that does not answer, prevent nothing", async () => {
  const data = folder();
  const none = await check(data, await registry());
  expect([none.code, none.found["version"]?.text]).toEqual([
    0,
    `machines-service is not published in the registry of npm; this is ${version}`,
  ]);
  const { code, found } = await check(data, { ...(await registry()), npm_config_registry: "http://127.0.0.1:9/" });
  expect([code, found["version"]?.text]).toEqual([
    0,
    `The registry of npm did not say which version is the newest one; this is ${version}`,
  ]);
});

test("a program that is newer than the running service says which steps it would take, and how much disk they need", async () => {
  const data = folder();
  await start(data);
  const { code, rest, found } = await check(data, as("0.2.0", ["0.1", "0.2"], step));
  expect([code, rest]).toEqual([0, { from: version, installed: "0.2.0", published: null }]);
  expect(found).toMatchObject({
    version: { state: "ok", text: `${version} would be replaced by 0.2.0, which is this program` },
    tables: {
      state: "ok",
      text: `1 change, from schema ${schema} to ${schema + 1}; before, the store is copied to service.db.backup-${schema}, with which a return is possible`,
    },
    disk: {
      state: "ok",
      text: expect.stringMatching(/^The store has .* its copy and the changes take up to .* kB, and .* are free$/),
    },
  });
});

test("too little room for the copy is a problem, and so is a store that cannot be read", async ({ skip }) => {
  const data = folder();
  const disk = mountSmall(data, 2 ** 26);
  skip(disk === undefined, "only root may mount a file system");
  await start(data);
  disk?.fill();
  const env = as("0.2.0", ["0.1", "0.2"], step);
  const full = await check(data, env);
  expect([full.code, full.found["disk"]]).toEqual([
    1,
    {
      state: "problem",
      text: expect.stringMatching(/ its copy and the changes take up to .* kB, and 0 B are free$/),
      advice: `Free some space for ${data}`,
    },
  ]);
  disk?.resize(2 ** 26);
  await command(["stop", "--data", data]);
  writeFileSync(join(data, "service.db"), Buffer.alloc(8192, "garbage"));
  const damaged = await check(data, env);
  expect([damaged.code, damaged.found["store"]]).toEqual([
    1,
    expect.objectContaining({ state: "problem", text: expect.stringContaining("service.db is damaged") }),
  ]);
});

test("a version that is older than the two releases before is refused, with the one to install first", async () => {
  const data = folder();
  await start(data);
  const { code, found } = await check(data, as("0.4.0", ["0.1", "0.2", "0.3", "0.4"]));
  expect([code, found["version"]]).toEqual([
    1,
    {
      state: "problem",
      text: `0.4.0 upgrades from the two releases before it, and ${version} is older`,
      advice: "Upgrade to 0.2 first: npm install --global machines-service@0.2",
    },
  ]);
});

test("an older program says that it cannot read newer tables, and that it can read the same ones", async () => {
  const data = folder();
  const { pid, end } = await foreground(data, [], as("0.2.0", ["0.1", "0.2"]));
  const same = await check(data, {});
  expect([same.code, same.found["version"]?.text, same.found["tables"]?.state]).toEqual([
    0,
    `0.2.0 would be replaced by the older ${version}, which is this program`,
    "ok",
  ]);
  process.kill(pid, "SIGTERM");
  await end;
  const newer = await foreground(data, [], as("0.2.0", ["0.1", "0.2"], step));
  const { code, found } = await check(data, {});
  expect([code, found["tables"]]).toEqual([
    1,
    {
      state: "problem",
      text: expect.stringContaining(
        `was written by machines-service 0.2.0 (schema ${schema + 1}), and this is ${version}`,
      ),
      advice: expect.stringContaining("upgrades.md#downgrade"),
    },
  ]);
  process.kill(newer.pid, "SIGTERM");
  await newer.end;
});

test("without --check, it says which commands upgrade", async () => {
  const { code, err } = await command(["upgrade", "--data", folder()]);
  expect([code, err]).toEqual([1, expect.stringContaining("npm install machines-service@latest")]);
});

test("versions are compared by their numbers, and releases by their order", () => {
  const sorted = ["0.2.0-rc.1", "0.2.0", "0.10.0", "1.0.0"];
  expect(sorted.toReversed().toSorted(compareVersions)).toEqual(sorted);
  const known = ["0.1", "0.2", "0.10", "1.0"];
  expect(known.map((one) => releaseBetween(`${one}.3`, known, "1.0"))).toEqual([
    "0.2",
    undefined,
    undefined,
    undefined,
  ]);
});
