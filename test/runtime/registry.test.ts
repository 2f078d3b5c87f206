// Images of a private registry: the credentials that are used, what is refused, and which image a tag means.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { ServiceOptions } from "../../service/index.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { image } from "./image.ts";
import { startRegistry } from "./registry.ts";
import { docker, hasEngine, withRuntime } from "./runtimes.ts";

const secret = "hush-hush";
const credentials = `someone:${secret}`;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Sets the folder of `docker login` for this test. */
function loggedIn(config: object): string {
  const folder = mkdtempSync(join(tmpdir(), "machines-login-"));
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  vi.stubEnv("DOCKER_CONFIG", folder);
  afterThisTest(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  return folder;
}

/** A credential helper on the PATH, which prints this answer and ends with this code. */
function helper(folder: string, name: string, answer: string, code = 0): void {
  const file = join(folder, `docker-credential-${name}`);
  writeFileSync(file, `#!/bin/sh\ncat > '${folder}/asked'\nprintf '%s\\n' '${answer}'\nexit ${code}\n`);
  chmodSync(file, 0o755);
  vi.stubEnv("PATH", `${folder}${delimiter}${process.env["PATH"]}`);
}

/** A private registry with an image `team/app:1`, and a service. */
async function withRegistry(options: ServiceOptions = {}) {
  const registry = await startRegistry(credentials);
  const digest = await registry.push("team/app:1", image, "first");
  const app = await withRuntime("docker", options, { registries: [registry.address] });
  const refused = async (name: string): Promise<string> => {
    const { status, text, body } = await app.call("POST", app.machines, { config: { image: name } });
    expect([status, text.includes(secret), text.includes(base64(credentials))]).toEqual([400, false, false]);
    return body.error;
  };
  return { ...registry, app, digest, refused, name: `${registry.address}/team/app:1` };
}

// The engine must reach a server of this computer, so it must run on it.
const isHere = hasEngine && process.platform === "linux";

describe.runIf(isHere)("a private registry", () => {
  test("the credentials of docker login fetch an image, which has the registry's digest", async () => {
    const { app, address, digest, name } = await withRegistry();
    loggedIn({ auths: { [address]: { auth: base64(credentials) } } });
    const id = await app.create({ image: name });
    await app.reaches(id, "started");
    expect((await app.get(id)).image_ref).toMatchObject({
      registry: address,
      repository: "team/app",
      tag: "1",
      digest,
    });
    // Now from the engine, by its digest as well.
    for (const again of [name, `${address}/team/app@${digest}`]) {
      const other = await app.create({ image: again });
      await app.reaches(other, "started");
      expect((await app.get(other)).image_ref).toMatchObject({ digest });
    }
  });

  test.each([
    ["a helper of one registry", (address: string) => ({ credHelpers: { [address]: "test" } })],
    ["a helper of all registries", () => ({ credsStore: "test" })],
  ])("%s is used for the credentials", async (_, config) => {
    const { app, address, name } = await withRegistry();
    const folder = loggedIn(config(address));
    helper(folder, "test", JSON.stringify({ ServerURL: address, Username: "someone", Secret: secret }));
    await app.reaches(await app.create({ image: name }), "started");
  });

  test("an image is refused with the registry's reason and the kind of credentials, and nothing is created", async () => {
    const { app, address, name, refused } = await withRegistry();
    const asked = (reason: string, how: string, of = name) =>
      `invalid config.image, got "${of}", the engine does not have it and cannot fetch it: ${reason} (${how})`;
    const [given, none] = [
      "requested with the credentials of docker login",
      "requested without credentials; docker login saves them",
    ];
    loggedIn({});
    const without = await refused(name);
    expect(without).toBe(asked("the registry denies access", none));
    const folder = loggedIn({ credsStore: "test" });
    helper(folder, "test", "credentials not found in native keychain", 1);
    expect(await refused(name)).toBe(without);
    loggedIn({ auths: { [address]: { auth: base64("someone:wrong") } } });
    expect(await refused(name)).toBe(asked("the registry denies access", given));
    loggedIn({ auths: { [address]: { auth: base64(credentials) } } });
    const missing = `${address}/team/none:1`;
    expect(await refused(missing)).toBe(asked("the registry has no such image", given, missing));
    expect((await app.call("GET", app.machines)).body).toEqual([]);
  });

  test("a tag that the registry moves means the image that the engine has, until that loses the tag", async () => {
    const { app, address, name, digest, push } = await withRegistry();
    loggedIn({ auths: { [address]: { auth: base64(credentials) } } });
    const found = async () => {
      const id = await app.create({ image: name });
      await app.reaches(id, "started");
      return (await app.get(id)).image_ref.digest;
    };
    expect(await found()).toBe(digest);
    const moved = await push("team/app:1", image, "second");
    expect(moved).not.toBe(digest);
    expect(await found()).toBe(digest);
    await docker.getImage(name).remove({ force: true });
    expect(await found()).toBe(moved);
  });

  test("an image that cannot be fetched after it was found fails the Machine, and the secret is in no log line", async () => {
    const lines: string[] = [];
    const { app, address, name, denyBlobs } = await withRegistry({ log: { write: (line) => void lines.push(line) } });
    loggedIn({ auths: { [address]: { auth: base64(credentials) } } });
    denyBlobs();
    const id = await app.create({ image: name });
    await app.reaches(id, "failed");
    expect(await app.exit(id)).toMatchObject({
      exit_code: 127,
      error: "the image cannot be fetched: the registry denies access",
    });
    expect(lines).not.toEqual([]);
    for (const hidden of [secret, base64(credentials)]) expect(lines.join("")).not.toContain(hidden);
  });
});
