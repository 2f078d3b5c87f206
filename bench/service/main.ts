// npm run bench:service: measures the Machines Control Service against a bare server of node:http on the same computer in the
// same minute. The service runs in a separate process, with its data on the disk.
import { Agent, request } from "node:http";
import fs from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { residentMb } from "../processes.ts";
import { command, start, stop, type Local } from "./command.ts";
import { consolePages, consoleStream, consoleViews } from "./consoleServing.ts";
import { fillMachines } from "./fill.ts";
import { load, type Rate } from "./load.ts";
import { data, median, milliseconds, report, run, say } from "./run.ts";
import { startBare } from "./startBare.ts";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    held: { type: "string", default: "5000" },
    machines: { type: "string", default: "100000" },
    /** Only what the console shows. */
    console: { type: "boolean", default: false },
    /** Only what the history costs. */
    history: { type: "boolean", default: false },
    /** Only what quotas cost. */
    quotas: { type: "boolean", default: false },
    /** Only reads of a Machine and creates. */
    rates: { type: "boolean", default: false },
  },
});
const [seconds, rounds, held, many] = [options.seconds, options.rounds, options.held, options.machines].map(Number) as [
  number,
  number,
  number,
  number,
];

type Call = (method: string, path: string, body?: object) => Promise<any>; // oxlint-disable-line typescript/no-explicit-any -- answers are only measured

const caller =
  ({ url, token }: Local): Call =>
  async (method, path, body) => {
    const answer = await fetch(`${url}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text.slice(0, 200)}`);
    return text === "" ? undefined : JSON.parse(text);
  };

const config = {
  image: "registry.example.com/web:v1",
  guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
  env: { PORT: "8080" },
  services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
};

function requireClean(rate: Rate, what: string): Rate {
  if (rate.failures > 0) throw new Error(`${what}: ${rate.failures} requests failed`);
  return rate;
}

/** Alternates between the floor and the service, so that both run in the same minutes. */
async function reading(local: Local, id: string): Promise<void> {
  const path = `/v1/apps/web/machines/${id}`;
  const text = await (
    await fetch(`${local.url}${path}`, { headers: { authorization: `Bearer ${local.token}` } })
  ).text();
  const bare = await startBare(text);
  const found: { floor: number; real: number; p99: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const floor = requireClean(await load({ url: `${bare.url}${path}`, token: local.token, seconds }), "bare");
    const real = requireClean(await load({ url: `${local.url}${path}`, token: local.token, seconds }), "GET Machine");
    found.push({ floor: floor.perSecond, real: real.perSecond, p99: real.p99Ms });
  }
  bare.process.kill();
  const [floor, real] = [median(found.map((one) => one.floor)), median(found.map((one) => one.real))];
  const p99 = median(found.map((one) => one.p99));
  report(
    "GET Machine",
    `${real}/s, ${(real / floor).toFixed(2)} of a bare server (${floor}/s), p99 ${p99} ms`,
    "≥ 0.5 of a bare server",
  );
}

async function creating(local: Local): Promise<void> {
  const body = JSON.stringify({ config });
  const found: Rate[] = [];
  for (let round = 0; round < rounds; round++) {
    const url = `${local.url}/v1/apps/created/machines`;
    found.push(
      requireClean(
        await load({ url, token: local.token, method: "POST", body, connections: 200, seconds }),
        "POST Machine",
      ),
    );
  }
  report("durable create", `${median(found.map((one) => one.perSecond))}/s`, "≥ 3,000/s");
}

/** Creates while pages of the console are open, on a service of its own: all creates together are more than the regions have room for. */
async function showing(): Promise<void> {
  const folder = `${data}-shown`;
  fs.rmSync(folder, { recursive: true, force: true });
  const local = await start(folder);
  await caller(local)("POST", "/apps", { name: "created", org_slug: "personal" });
  await consolePages(local, JSON.stringify({ config }), seconds, rounds);
  await stop(folder);
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Creates with and without the history, in turns, by a client that names its update. */
async function keepingHistory(): Promise<void> {
  const body = JSON.stringify({ config });
  const found: Record<"with" | "without", number[]> = { with: [], without: [] };
  const folders = { with: `${data}-with`, without: `${data}-without` };
  for (let round = 0; round < rounds; round++)
    for (const name of ["with", "without"] as const) {
      fs.rmSync(folders[name], { recursive: true, force: true });
      const local = await start(folders[name], ...(name === "with" ? [] : ["--keep-history", "off"]));
      await caller(local)("POST", "/apps", { name: "created", org_slug: "personal" });
      const url = `${local.url}/v1/apps/created/machines`;
      const headers = { "pulumi-update": "bench", "pulumi-urn": "urn:pulumi:dev::shop::machines:index:Machine::web" };
      const one = { url, token: local.token, method: "POST", body, connections: 200, seconds, headers } as const;
      found[name].push(requireClean(await load(one), `creates ${name} history`).perSecond);
      await stop(folders[name]);
    }
  for (const folder of Object.values(folders)) fs.rmSync(folder, { recursive: true, force: true });
  const [kept, none] = [median(found.with), median(found.without)];
  report("creates with history", `${kept}/s, ${(kept / none).toFixed(2)} of those without (${none}/s)`, "≥ 0.95");
}

/** Machines that an organization has when the cost of its quotas is measured. */
const ofOrganization = 10_000;

/** Creates with quotas, without any, and without the triggers that count for them, in turns. */
async function keepingQuotas(): Promise<void> {
  const call = caller(await start(data, "--keep-history", "off"));
  await call("POST", "/apps", { name: "created", org_slug: "personal" });
  const { id } = await call("POST", "/apps/created/machines", { config });
  await call("GET", `/apps/created/machines/${id}/wait?state=started`);
  await stop(data);
  fillMachines(ofOrganization);
  const body = JSON.stringify({ config });
  const found: Record<"with" | "none" | "floor", number[]> = { with: [], none: [], floor: [] };
  for (let round = 0; round < rounds; round++)
    for (const name of ["with", "none", "floor"] as const) {
      const folder = `${data}-${name}`;
      fs.cpSync(data, folder, { recursive: true });
      if (name === "floor") dropCounters(folder);
      if (name === "with") {
        await command("quota", "set", "--data", folder, "--machines", "1000000", "--memory", "1000000000");
        await command(
          "quota",
          "set",
          "--data",
          folder,
          "--app",
          "created",
          "--machines",
          "1000000",
          "--requests",
          "100000",
        );
      }
      const { url, token } = await start(folder, "--keep-history", "off");
      const one = {
        url: `${url}/v1/apps/created/machines`,
        token,
        method: "POST",
        body,
        connections: 200,
        seconds,
      } as const;
      found[name].push(requireClean(await load(one), `creates, ${name}`).perSecond);
      await stop(folder);
      fs.rmSync(folder, { recursive: true, force: true });
    }
  const [kept, none, floor] = [median(found.with), median(found.none), median(found.floor)];
  report(
    "creates without quotas",
    `${none}/s, ${(none / floor).toFixed(2)} of those without counters (${floor}/s)`,
    "≥ 0.97",
  );
  report("creates with four quotas", `${kept}/s, ${(kept / none).toFixed(2)} of those without quotas`, "≥ 0.95");
}

function dropCounters(folder: string): void {
  const db = new DatabaseSync(join(folder, "service.db"));
  const counters = "type = 'trigger' AND (sql LIKE '%org_quotas%' OR sql LIKE '%app_quotas%')";
  for (const { name } of db.prepare(`SELECT name FROM sqlite_schema WHERE ${counters}`).all())
    db.exec(`DROP TRIGGER ${String(name)}`);
  db.close();
}

/** Milliseconds until an answer arrives, without parsing it: of the first request, and of one after the code is compiled. */
async function fetched({ url, token }: Local, path: string): Promise<{ first: number; warm: number }> {
  const times: number[] = [];
  for (let i = 0; i < 100; i++)
    times.push(
      await milliseconds(async () =>
        (await fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${token}` } })).arrayBuffer(),
      ),
    );
  return { first: times[0] ?? 0, warm: median(times.slice(50)) };
}

async function listing(local: Local, call: Call): Promise<void> {
  await call("POST", "/apps", { name: "list", org_slug: "personal" });
  for (let i = 0; i < 1000; i += 50)
    await Promise.all(Array.from({ length: 50 }, () => call("POST", "/apps/list/machines", { config })));
  const { first, warm } = await fetched(local, "/apps/list/machines");
  report("list of 1,000 Machines", `${warm.toFixed(1)} ms (the very first ${first.toFixed(0)} ms)`, "≤ 10 ms");
}

/** One held request over plain node:http: the memory and queues of a client library would distort the figures. */
function hold(url: URL, agent: Agent, token: string): { opened: Promise<void>; done: Promise<number> } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const done = new Promise<number>((resolve, reject) => {
    const held = request(url, { agent, headers: { authorization: `Bearer ${token}` } }, (answer) =>
      answer.resume().on("end", () => resolve(performance.now())),
    );
    held.on("error", reject).on("socket", (socket) => (socket.connecting ? socket.once("connect", open) : open()));
    held.end();
  });
  return { opened, done };
}

/** Holds many requests, then lets all of them be answered. Returns their memory, and the time between the first and the last answer. */
async function holdMany(
  { url, token, pid }: Local,
  path: string,
  end: () => Promise<unknown>,
): Promise<{ mb: number; ms: number }> {
  const before = residentMb(pid) ?? 0;
  const agent = new Agent({ keepAlive: false, maxSockets: held });
  const waits: ReturnType<typeof hold>[] = [];
  for (let i = 0; i < held; i += 200) {
    const some = Array.from({ length: Math.min(200, held - i) }, () => hold(new URL(`${url}${path}`), agent, token));
    waits.push(...some);
    await Promise.all(some.map(({ opened }) => opened));
  }
  await fetch(`${url}/v1/platform/regions`, { headers: { authorization: `Bearer ${token}` } }); // answered after all of them were received
  const during = residentMb(pid) ?? 0;
  const ends = Promise.all(waits.map(({ done }) => done));
  await end();
  const times = (await ends).toSorted((a, b) => a - b);
  return { mb: during - before, ms: Math.round((times.at(-1) ?? 0) - (times[0] ?? 0)) };
}

async function waiting(local: Local, call: Call): Promise<void> {
  const { id } = await call("POST", "/apps/web/machines", { config });
  await call("GET", `/apps/web/machines/${id}/wait?state=started`);
  const path = `/v1/apps/web/machines/${id}/wait?state=stopped&timeout=60`;
  const bare = await startBare("{}");
  const floor = await holdMany({ url: bare.url, token: local.token, pid: bare.process.pid ?? 0 }, path, () =>
    fetch(bare.url, { method: "POST" }),
  );
  bare.process.kill();
  const real = await holdMany(local, path, () => call("POST", `/apps/web/machines/${id}/stop`, {}));
  report(
    `${held.toLocaleString("en")} requests held`,
    `${real.mb} MB more (a bare server: ${floor.mb} MB); answered within ${real.ms} ms of the first (${floor.ms} ms)`,
    "≤ 1.2 of the memory of a bare server",
  );
}

async function holding(id: string): Promise<void> {
  await stop(data);
  fillMachines(many);
  let local: Local | undefined;
  const restart = await milliseconds(async () => (local = await start(data)));
  if (!local) return;
  const page = "/orgs/personal/machines?limit=1000";
  const [whole, summary] = [await fetched(local, page), await fetched(local, `${page}&summary=true`)];
  report(
    `${many.toLocaleString("en")} Machines held`,
    `restart ${(restart / 1000).toFixed(2)} s, page of 1,000 ${whole.warm.toFixed(0)} ms (the very first ${whole.first.toFixed(0)} ms), summary ${summary.warm.toFixed(0)} ms, ${residentMb(local.pid)} MB resident`,
    "restart ≤ 2 s, page ≤ 15 ms",
  );
  await consoleViews(local, id, many);
  await consoleStream(local, id);
}

async function bench(): Promise<void> {
  say(`${cpus().length} × ${cpus()[0]?.model}, Node.js ${process.versions.node}`);
  if (options.history) return keepingHistory();
  if (options.quotas) return keepingQuotas();
  const local = await start(data);
  const call = caller(local);
  report("fresh service", `${residentMb(local.pid)} MB resident`, "");
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  await call("POST", "/apps", { name: "created", org_slug: "personal" });
  const { id } = await call("POST", "/apps/web/machines", { config });
  await call("GET", `/apps/web/machines/${id}/wait?state=started`);
  if (options.console) {
    await showing();
    return holding(id);
  }
  await reading(local, id);
  if (options.rates) return creating(local);
  await listing(local, call);
  // A fresh service: memory that a used one has allocated already would hide the memory of waits.
  await stop(data);
  const fresh = await start(data);
  await waiting(fresh, caller(fresh));
  await creating(fresh);
  await showing();
  await holding(id);
}

void run(["what", "figure", "aim"], bench);
