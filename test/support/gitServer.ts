// A Git host over HTTPS on this computer: Pulumi takes plugins from repositories over HTTPS alone.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { currentCertificate } from "./certificates.ts";

/** A running host. */
export interface GitServer {
  /** URL of the repository. */
  readonly url: string;
  /** File with the certificate to trust. */
  readonly certificate: string;
  close(): Promise<void>;
}

/** Serves the current commit of a clone as `acme/pulumi-machines.git`, with this tag and the branch `main`. */
export async function serveClone(clone: string, tag: string): Promise<GitServer> {
  const root = mkdtempSync(join(tmpdir(), "pulumi-machines-git-"));
  const repository = join(root, "acme/pulumi-machines.git");
  const git = (...args: string[]): void => void execFileSync("git", args, { stdio: "pipe" });
  git("clone", "--quiet", "--bare", "--no-local", "--depth", "1", clone, repository);
  git("-C", repository, "tag", "--force", tag);
  git("-C", repository, "update-ref", "refs/heads/main", "HEAD"); // a clone may have no branch checked out
  const { fullchain: cert, private_key: key } = currentCertificate({ hosts: ["localhost"] });
  const certificate = join(root, "certificate.pem");
  writeFileSync(certificate, cert);
  const server = createServer({ cert, key }, (request, response) => {
    const { pathname, search } = new URL(request.url ?? "/", "https://localhost");
    const backend = spawn("git", ["http-backend"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: {
        PATH: process.env["PATH"],
        ...{ GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: "1", REMOTE_ADDR: "127.0.0.1" },
        ...{ PATH_INFO: pathname, QUERY_STRING: search.slice(1), REQUEST_METHOD: request.method },
        CONTENT_TYPE: request.headers["content-type"],
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"],
        GIT_PROTOCOL: request.headers["git-protocol"]?.toString(),
      },
    });
    request.pipe(backend.stdin);
    answer(backend.stdout, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/acme/pulumi-machines.git`,
    certificate,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Sends what a CGI program prints: its headers, an empty line, the body. */
function answer(output: NodeJS.ReadableStream, response: ServerResponse): void {
  let head = Buffer.alloc(0);
  let isBody = false;
  output.on("data", (part: Buffer) => {
    if (isBody) return void response.write(part);
    head = Buffer.concat([head, part]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    isBody = true;
    for (const line of head.subarray(0, end).toString().split("\r\n")) {
      const [name = "", value = ""] = line.split(/: */, 2);
      if (name === "Status") response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(head.subarray(end + 4));
  });
  output.on("end", () => response.end());
}
