// The upload to Maven Central, with real signatures, to a server that answers as Central does. Its rules are those of
// https://central.sonatype.org/publish/publish-portal-api/.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { uploadToCentral } from "../../tools/release/central.mjs";

// gpg refuses a long path for its agent's socket.
const work = mkdtempSync(join(tmpdir(), "mc-"));
const account = { user: "alice", password: "secret", passphrase: "of the key", pause: 1 };
let isThere = false;
const before = process.env["GNUPGHOME"];
const seen: string[] = [];
let states: string[] = [];
let received: Buffer = Buffer.alloc(0);

const server = createServer((request, answer) => void respond(request, answer));

async function respond(request: IncomingMessage, answer: ServerResponse): Promise<void> {
  seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
  const body = await bodyOf(request);
  if (request.url?.includes("/upload")) {
    received = body;
    answer.end("id 1\n");
  } else answer.end(JSON.stringify({ deploymentState: states.shift(), errors: { pom: ["no name"] } }));
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** Uploads a file to the server. */
function upload(): Promise<void> {
  const file = join(work, "a-1.0.0.pom");
  writeFileSync(file, "<project/>");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return uploadToCentral([file], "org/example/a/1.0.0", { ...account, address });
}

beforeAll(async () => {
  try {
    for (const program of ["gpg", "zip", "unzip"])
      execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    isThere = true;
  } catch {
    return leaveOut("the upload to Maven Central", "gpg, zip or unzip is not installed");
  }
  process.env["GNUPGHOME"] = work;
  const key = ["--batch", "--pinentry-mode", "loopback", "--passphrase", account.passphrase];
  execFileSync("gpg", [...key, "--quick-generate-key", "a@example.com", "ed25519", "sign", "never"], { stdio: "pipe" });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
});
afterAll(() => {
  if (isThere) execFileSync("gpgconf", ["--kill", "all"], { stdio: "ignore" });
  if (before === undefined) delete process.env["GNUPGHOME"];
  else process.env["GNUPGHOME"] = before;
  server.close();
  rmSync(work, { recursive: true, force: true });
});

test("files are uploaded with signatures and checksums, and the upload is awaited", async ({ skip }) => {
  skip(!isThere);
  states = ["PENDING", "PUBLISHING", "PUBLISHED"];
  await upload();
  const authorization = `Bearer ${Buffer.from("alice:secret").toString("base64")}`;
  expect(seen).toEqual([
    `POST /api/v1/publisher/upload?publishingType=AUTOMATIC ${authorization}`,
    ...Array.from({ length: 3 }, () => `POST /api/v1/publisher/status?id=id%201 ${authorization}`),
  ]);
  // The archive is the only part of the form: between the empty line after its headers and the last boundary.
  const zip = received.subarray(received.indexOf("\r\n\r\n") + 4, received.lastIndexOf("\r\n--"));
  writeFileSync(join(work, "bundle.zip"), zip);
  mkdirSync(join(work, "out"));
  execFileSync("unzip", ["-q", "bundle.zip", "-d", "out"], { cwd: work });
  const at = join(work, "out/org/example/a/1.0.0");
  const pom = join(at, "a-1.0.0.pom");
  expect(readdirSync(at).toSorted()).toEqual(
    ["", ".asc", ".md5", ".sha1", ".sha256"].map((end) => `a-1.0.0.pom${end}`),
  );
  execFileSync("gpg", ["--verify", `${pom}.asc`, pom], { stdio: "pipe" });
  expect(readFileSync(`${pom}.sha1`, "utf8")).toBe(createHash("sha1").update("<project/>").digest("hex"));
});

test("an upload that Central refuses fails with its reasons", async ({ skip }) => {
  skip(!isThere);
  states = ["FAILED"];
  await expect(upload()).rejects.toThrow('Maven Central refuses the upload id 1: {"pom":["no name"]}');
});
