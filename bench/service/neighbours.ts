// npm run bench:neighbours: measures the longest wait of a client while another one sends expensive requests. The
// service runs in a separate process, with its data on the disk; requests are as large as the service accepts.
import { cpus } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { residentMb } from "../processes.ts";
import { start, stop, type Local } from "./command.ts";
import { data, milliseconds, report, run, say } from "./run.ts";

const { values: options } = parseArgs({ options: { machines: { type: "string", default: "20000" } } });
const many = Number(options.machines);

interface Answer {
  readonly status: number;
  readonly length: number;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- answers are only measured
}

async function send({ url, token }: Local, method: string, path: string, body?: object, read = true): Promise<Answer> {
  const answer = await fetch(`${url}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (read) {
    const text = await answer.text();
    return { status: answer.status, length: text.length, body: text === "" ? undefined : JSON.parse(text) };
  }
  let length = 0;
  for await (const chunk of answer.body ?? []) length += (chunk as Uint8Array).length;
  return { status: answer.status, length, body: undefined };
}

/** Another client: it creates Machines and reads one until it is stopped, and returns its longest wait. */
function other(local: Local, id: string): { end: () => Promise<{ read: number; write: number }> } {
  const over = new AbortController();
  const longest = async (act: () => Promise<unknown>): Promise<number> => {
    let most = 0;
    while (!over.signal.aborted) {
      most = Math.max(most, await milliseconds(act));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return most;
  };
  const read = longest(() => send(local, "GET", `/apps/own/machines/${id}`));
  const write = longest(() =>
    send(local, "POST", `/apps/own/machines/${id}/metadata/k`, { value: String(Math.random()) }),
  );
  return {
    async end() {
      over.abort();
      return { read: await read, write: await write };
    },
  };
}

async function during(local: Local, id: string, what: string, act: () => Promise<string>): Promise<void> {
  const client = other(local, id);
  const before = performance.now();
  const said = await act();
  const seconds = ((performance.now() - before) / 1000).toFixed(1);
  const { read, write } = await client.end();
  report(
    what,
    `${said}${seconds} s; longest wait of another client: ${read.toFixed(0)} ms to read, ${write.toFixed(0)} ms to write`,
  );
}

const creates = (local: Local): Promise<number> =>
  milliseconds(async () => {
    for (let i = 0; i < 100; i++) await send(local, "POST", "/apps/own/machines", { config: { image: "nginx" } });
  });

/** The largest number that the service accepts, found by bisection. */
async function largest(from: number, take: (size: number) => Promise<number>): Promise<number> {
  for (let size = from; size > 1000; size = Math.floor(size / 2)) if ((await take(size)) < 300) return size;
  return 0;
}

/** Copies a Machine many times, by SQL: creating them over HTTP would measure something else. */
function fill(app: string, count: number): void {
  const db = new DatabaseSync(join(data, "service.db"));
  const columns = (table: string): string[] =>
    db
      .prepare(`PRAGMA table_info(${table})`)
      .all()
      .map(({ name }) => String(name));
  const id = "printf('%014x', ?1)";
  // Read once, because among the copies it would take longer each time.
  const first = db
    .prepare("SELECT m.id FROM machines m JOIN apps a ON a.id = m.app WHERE a.name = ? AND m.name = 'first'")
    .get(app)?.["id"] as string;
  const copy = (table: string, key: string, replaced: Record<string, string>) =>
    db.prepare(
      `INSERT INTO ${table} SELECT ${columns(table)
        .map((name) => replaced[name] ?? name)
        .join(", ")} FROM ${table} WHERE ${key} = '${first}'`,
    );
  db.exec("BEGIN");
  const all = [
    copy("machines", "id", { id, name: "printf('copy-%d', ?1)" }),
    copy("machine_versions", "machine", { machine: id }),
    copy("events", "machine", { machine: id }),
  ];
  for (let i = 1; i <= count; i++) for (const one of all) one.run(i);
  db.exec("COMMIT");
  db.close();
}

/** Waits until an App is gone: its name can be reused, and all its rows are deleted. */
async function gone(name: string): Promise<void> {
  const db = new DatabaseSync(join(data, "service.db"), { readOnly: true });
  const left = db.prepare("SELECT count(*) AS n FROM apps WHERE name <> 'own' AND deleting > 0");
  while (Number(left.get()?.["n"]) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  db.close();
  say(`${name} is gone`);
}

async function bench(): Promise<void> {
  say(`${cpus().length} × ${cpus()[0]?.model}, Node.js ${process.versions.node}`);
  let local = await start(data);
  for (const name of ["own", "large", "big", "many"])
    await send(local, "POST", "/apps", { name, org_slug: "personal" });
  const { id } = (await send(local, "POST", "/apps/own/machines", { config: { image: "nginx" } })).body;
  await creates(local);
  const alone = await creates(local);

  const value = "x".repeat(65_000);
  let secrets = 0;
  while (secrets < 500) {
    const names = Array.from({ length: 8 }, (_, i) => [`S${secrets + i}`, value]);
    if ((await send(local, "POST", "/apps/large/secrets", { values: Object.fromEntries(names) })).status >= 300) break;
    secrets += 8;
  }
  const config = await largest(4_100_000, async (size) => {
    const body = { config: { image: "nginx", env: { FILL: "x".repeat(size) } } };
    return (await send(local, "POST", "/apps/large/machines", body)).status;
  });
  for (let i = 1; i < 6; i++)
    await send(local, "POST", "/apps/large/machines", {
      config: { image: "nginx", env: { FILL: "x".repeat(config) } },
    });
  const beside = await creates(local);
  report(
    `100 creates beside an App with ${((secrets * 65_000) / 1e6).toFixed(1)} MB of secrets and 6 Machines of ${(config / 1e6).toFixed(1)} MB`,
    `${(beside / 1000).toFixed(2)} s, ${(beside / alone).toFixed(2)} of ${(alone / 1000).toFixed(2)} s alone`,
  );
  await during(local, id, "that App deleted", async () => {
    await send(local, "DELETE", "/apps/large?force=true");
    await gone("large");
    return "";
  });

  for (let i = 0; i < 141; i++)
    await send(local, "POST", "/apps/big/machines", { config: { image: "nginx", env: { FILL: "x".repeat(config) } } });
  await during(local, id, `8 lists at once of 141 Machines of ${(config / 1e6).toFixed(1)} MB`, async () => {
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, residentMb(local.pid) ?? 0)), 50);
    const lists = await Promise.all(
      Array.from({ length: 8 }, () => send(local, "GET", "/apps/big/machines", undefined, false)),
    );
    clearInterval(watch);
    const [{ status, length }] = lists as [Answer];
    return `${status}, ${(length / 1e6).toFixed(0)} MB each, at most ${most} MB resident, `;
  });

  await send(local, "POST", "/apps/many/machines", { name: "first", config: { image: "nginx" } });
  await send(local, "GET", "/apps/own");
  await stop(data);
  fill("many", many);
  local = await start(data);
  await during(local, id, `App with ${many.toLocaleString("en")} Machines deleted`, async () => {
    await send(local, "DELETE", "/apps/many?force=true");
    await gone("many");
    return "";
  });
}

void run(["what", "figure"], bench);
