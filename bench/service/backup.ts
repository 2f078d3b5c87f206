// Measures backups: `npm run bench:backup [-- --gigabytes N]`. A volume of a container has that many gigabytes of random bytes, which
// neither compress nor repeat. It measures the first backup, one after a hundredth of the files has changed, one without a change,
// and the restore onto the same engine after the volume was removed. It needs an engine (DOCKER_HOST), Go for restic, and three times
// the space.
import { createCipheriv } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";
import Dockerode from "dockerode";
import { pack } from "tar-stream";
import { labels } from "../../service/runtime/docker/container.ts";
import { volumesOf } from "../../service/runtime/docker/index.ts";
import { resticProgram } from "../../tools/setup/restic.mjs";
import { command, start, stop } from "./command.ts";
import { data, folder, milliseconds, report, run } from "./run.ts";

const { gigabytes } = parseArgs({ options: { gigabytes: { type: "string", default: "10" } } }).values;
const fileBytes = 10_000_000;
const count = Math.round((Number(gigabytes) * 1e9) / fileBytes);
const changed = Math.max(1, Math.round(count / 100));
const pieceBytes = 1_000_000;
const never = new AbortController().signal;
const docker = new Dockerode();
const repository = join(folder, "repository");
const runtime = ["--runtime", "docker", "--http", "0", "--https", "0"];

/** The bytes of a file, the same for the same version of it. */
function* bytesOf(index: number, version: number): Generator<Buffer> {
  const key = Buffer.alloc(16);
  key.writeUInt32LE(index);
  key.writeUInt32LE(version, 4);
  const cipher = createCipheriv("aes-128-ctr", key, Buffer.alloc(16));
  const zeros = Buffer.alloc(pieceBytes);
  for (let i = 0; i < fileBytes; i += pieceBytes) yield cipher.update(zeros);
}

/** An archive of all files, of which the first ones have another version. */
function archive(newer: number): Readable {
  const made = pack();
  const fill = async (): Promise<void> => {
    for (let index = 0; index < count; index++) {
      const header = { name: `file-${index}`, size: fileBytes, mtime: new Date(0), mode: 0o640 };
      await new Promise<void>((done, fail) => {
        const entry = made.entry(header, (error) => (error ? fail(error) : done()));
        Readable.from(bytesOf(index, index < newer ? 1 : 0)).pipe(entry);
      });
    }
    made.finalize();
  };
  fill().catch((error: unknown) => made.destroy(error as Error));
  return made as unknown as Readable;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`;

async function sizeOf(path: string): Promise<number> {
  const found = await readdir(path, { recursive: true, withFileTypes: true });
  const sizes = found
    .filter((one) => one.isFile())
    .map(async (one) => (await stat(join(one.parentPath, one.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

const removeVolumes = async (of: string): Promise<void> => {
  const dataId = readFileSync(join(of, "data-id"), "utf8").trim();
  const { Volumes: found } = await docker.listVolumes({ filters: { label: [`${labels.data}=${dataId}`] } });
  for (const { Name } of found ?? []) await docker.getVolume(Name).remove();
};

void run(["what", "time", "the repository grows by"], async () => {
  const { program, reason } = await resticProgram(process.env);
  if (program === undefined) throw new Error(reason);
  const passphrase = join(folder, "passphrase");
  writeFileSync(passphrase, "of the bench\n");
  const opening = ["--restic", program, "--backup-passphrase-file", passphrase];
  const restored = join(folder, "restored");
  try {
    const { url, token } = await start(data, ...runtime);
    const post = async (path: string, body: object): Promise<{ readonly id: string; readonly state: string }> => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${url}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return (await answer.json()) as { id: string; state: string };
    };
    await post("/apps", { name: "bench", org_slug: "personal" });
    const { id } = await post("/apps/bench/volumes", { name: "data", region: "ams", size_gb: 100 });
    const dataId = readFileSync(join(data, "data-id"), "utf8").trim();
    const contents = await volumesOf(dataId);
    await contents.write(id, archive(0), never);
    mkdirSync(repository);
    let size = 0;
    const backUp = async (what: string): Promise<void> => {
      const ms = await milliseconds(() => command("backup", "--data", data, "--to", repository, ...opening));
      const now = await sizeOf(repository);
      report(what, seconds(ms), `${((now - size) / 1e6).toFixed(0)} MB`);
      size = now;
    };
    await backUp(`the first backup of ${gigabytes} GB`);
    await contents.write(id, archive(changed), never);
    await backUp("one after 1 % has changed");
    await backUp("one after nothing has changed");
    await stop(data);
    await removeVolumes(data);
    const from = ["--from", repository, ...opening];
    report("restore", seconds(await milliseconds(() => command("restore", "--data", restored, ...from))), "");
    report(
      "backup verify",
      seconds(await milliseconds(() => command("backup", "verify", "--data", restored, ...from))),
      "",
    );
  } finally {
    for (const one of [data, restored]) await removeVolumes(one).catch(() => {});
  }
});
