// The parts of a release that decide: versions, notes, and what is published already.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingAssets, pushTag } from "../../tools/release/github.mjs";
import { digestOf } from "../../tools/release/image.mjs";
import { mavenHas, npmHas, pypiHas } from "../../tools/release/registries.mjs";
import { notesOf, versionEverywhere, withWholeLinks } from "../../tools/release/versions.mjs";

const folder = mkdtempSync(join(tmpdir(), "machines-release-"));
const file = join(folder, "a-1.0.0.tgz");
const bytes = "what was built";
writeFileSync(file, bytes);
const sha256 = createHash("sha256").update(bytes).digest("hex");
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a command that must fail, and returns what it prints. */
function failing(...args: readonly string[]): string {
  try {
    execFileSync("node", args, { stdio: "pipe", encoding: "utf8" });
  } catch (error) {
    return (error as { stderr: string }).stderr;
  }
  throw new Error(`${args.join(" ")} did not fail`);
}

describe("npm run release", () => {
  test("publishes nothing, and says what does", () => {
    expect(failing("tools/release.mjs")).toMatch(/^Only \.github\/workflows\/release\.yml publishes, .*--dry-run.*\n$/);
    expect(failing("tools/release/publish.mjs", "npm")).toMatch(
      /^Only .*release\.yml publishes, for the tag v\S+\.\n$/,
    );
  });

  test("refuses arguments that it does not know, and a version that the clone does not have", () => {
    expect(failing("tools/release.mjs", "--dry-run", "--only", "nmp")).toContain("--only: nmp is no step");
    expect(failing("tools/release.mjs", "--dry-run", "--only", "go", "--to", "docs")).toContain("docs has other files");
    expect(failing("tools/release.mjs", "--dry-run", "99.0.0")).toContain("not 99.0.0: check out the commit");
  });

  test("the version is the same everywhere, and a place with another one is named", () => {
    expect(versionEverywhere()).toMatch(/^\d+\.\d+\.\d+/);
    const places = [
      { place: "here", version: "1.0.0" },
      { place: "there", version: "0.9.0" },
    ];
    expect(() => versionEverywhere(places)).toThrow(
      "here has version 1.0.0, but not every place does:\n  there has 0.9.0",
    );
  });
});

describe("the notes of a release", () => {
  const changelog = `# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-01-31\n\n### Added\n\n- One [page](docs/a.md#b).\n\n## [1.0.0]\n\n- First.\n`;

  test("are the section of its version, without the next one", () => {
    expect(notesOf(changelog, "1.1.0")).toBe("### Added\n\n- One [page](docs/a.md#b).");
    expect(notesOf(changelog, "1.0.0")).toBe("- First.");
  });

  test("are missing if the section is missing or empty", () => {
    expect(notesOf(changelog, "1.1")).toBeUndefined();
    expect(notesOf(changelog, "Unreleased")).toBeUndefined();
  });

  test("link to the files of the release", () => {
    expect(withWholeLinks("[a](docs/a.md#b) [c](https://c.example) [d](#d)", "https://h.example/r", "v1.0.0")).toBe(
      "[a](https://h.example/r/blob/v1.0.0/docs/a.md#b) [c](https://c.example) [d](#d)",
    );
  });
});

describe("what is published already", () => {
  let server: Server;
  let address = "";
  const pages = new Map<string, string>();

  beforeAll(async () => {
    server = createServer(({ url = "" }, answer) => {
      const page = pages.get(url);
      answer.writeHead(page === "broken" ? 503 : page === undefined ? 404 : 200).end(page);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((done) => server.close(done)));

  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const onPypi = (sum: string): string =>
    JSON.stringify({ urls: [{ filename: basename(file), digests: { sha256: sum } }] });
  const registries = [
    [
      "npm",
      () => npmHas(file, "a", "1.0.0", address),
      "/a/1.0.0",
      JSON.stringify({ dist: { integrity } }),
      '{"dist":{"integrity":"sha512-AA=="}}',
    ],
    ["PyPI", () => pypiHas(file, "a", "1.0.0", address), "/pypi/a/1.0.0/json", onPypi(sha256), onPypi("00")],
    ["Maven Central", () => mavenHas(file, "a", address), "/a/a-1.0.0.tgz", bytes, "other bytes"],
  ] as const;

  test.each(registries)("on %s is left alone, and other bytes are refused", async (_, has, path, same, other) => {
    pages.delete(path);
    expect(await has()).toBe(false);
    pages.set(path, same);
    expect(await has()).toBe(true);
    pages.set(path, other);
    await expect(has()).rejects.toThrow(/is published with other bytes than .*, so release the next one/);
    pages.set(path, "broken");
    await expect(has()).rejects.toThrow("answered 503: run this job again later");
  });

  test("on GitHub is left alone, other bytes are refused, and an older signature stays", () => {
    const signature = join(folder, "SHA256SUMS.sigstore.json");
    writeFileSync(signature, "signed again");
    const asset = (digest: string) => ({ name: basename(file), digest: `sha256:${digest}` });
    expect(missingAssets([file, signature], [])).toEqual([file, signature]);
    expect(
      missingAssets([file, signature], [asset(sha256), { name: basename(signature), digest: "sha256:00" }]),
    ).toEqual([]);
    expect(() => missingAssets([file], [asset("00")])).toThrow("The release on GitHub has another a-1.0.0.tgz");
  });

  test("as an image counts if it is of the same commit", () => {
    const config = (revision: string) => ({ config: { Labels: { "org.opencontainers.image.revision": revision } } });
    const inspected = {
      manifest: { digest: "sha256:aa" },
      image: { "linux/amd64": config("c1"), "linux/arm64": config("c1") },
    };
    expect(digestOf(inspected, "i:1", "c1")).toBe("sha256:aa");
    expect(digestOf({ ...inspected, image: config("c1") }, "i:1", "c1")).toBe("sha256:aa");
    expect(() => digestOf(inspected, "i:1", "c2")).toThrow("i:1 is published from c1, not from c2");
  });

  test("as the tag of the Go module stays, and is never moved", () => {
    const git = (cwd: string, ...args: readonly string[]): string =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
        cwd,
        encoding: "utf8",
        stdio: "pipe",
      });
    const [origin, clone] = [join(folder, "origin"), join(folder, "clone")];
    git(folder, "init", "--quiet", "--bare", origin);
    git(folder, "clone", "--quiet", origin, clone);
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "first");
    const tag = "sdk/go/machines/v1.0.0";
    expect(pushTag(tag, clone)).toBe(true);
    expect(pushTag(tag, clone)).toBe(false);
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "second");
    expect(() => pushTag(tag, clone)).toThrow(`The tag ${tag} is at`);
  });
});

test("every npm package names the repository that its provenance must name", () => {
  for (const dir of ["sdk/nodejs", "sdk/nodejs-plugin", "service", "policy"]) {
    const { repository } = JSON.parse(readFileSync(`${dir}/package.json`, "utf8")) as { repository: object };
    expect(repository).toEqual({
      type: "git",
      url: "git+https://github.com/pulumi-machines/pulumi-machines.git",
      directory: dir,
    });
  }
});
