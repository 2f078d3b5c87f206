// restic, which keeps backups, and a server with the interface of S3.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { resticProgram, s3Program } from "../../tools/setup/restic.mjs";
import { freePort } from "./freePort.ts";
import { afterThisTest } from "./leftovers.ts";

/** The program; undefined, said once, where it cannot be built. */
export async function findRestic(): Promise<string | undefined> {
  const { program, reason } = await resticProgram(process.env);
  if (program === undefined) leaveOut("backups", reason);
  return program;
}

/** A repository of a test. */
export interface TestRepository {
  readonly at: string;
  /** What commands and services need to open it. */
  readonly env: NodeJS.ProcessEnv;
}

/** A repository in a folder that is removed after the test. */
export function testRepository(restic: string): TestRepository {
  const folder = mkdtempSync(join(tmpdir(), "machines-backups-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const passphrase = join(folder, "passphrase");
  writeFileSync(passphrase, "correct horse battery staple\n", { mode: 0o600 });
  return {
    at: join(folder, "repository"),
    env: {
      ...process.env,
      MACHINES_SERVICE_RESTIC: restic,
      MACHINES_SERVICE_BACKUP_PASSPHRASE_FILE: passphrase,
    },
  };
}

/** Starts a server with the interface of S3 and one bucket, `backups`. Undefined, said once, where it cannot be built. */
export async function startS3(
  host = "127.0.0.1",
): Promise<{ readonly url: string; readonly variables: NodeJS.ProcessEnv } | undefined> {
  const { program, reason } = await s3Program(process.env);
  if (program === undefined) {
    leaveOut("backups to S3", reason);
    return undefined;
  }
  const port = await freePort();
  const child = spawn(program, ["-backend", "memory", "-initialbucket", "backups", "-host", `${host}:${port}`], {
    stdio: "ignore",
  });
  const ended = once(child, "close");
  afterThisTest(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const url = `http://${host}:${port}`;
  await expect
    .poll(() =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  const variables = {
    AWS_ACCESS_KEY_ID: "tests",
    AWS_SECRET_ACCESS_KEY: "not-a-secret",
    AWS_DEFAULT_REGION: "us-east-1",
  };
  return { url: `s3:${url}/backups`, variables };
}
