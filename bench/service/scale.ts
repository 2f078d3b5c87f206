// npm run bench:scale: measures a service with 100,000 Machines against one with 1,000, and against a bare server, in the same
// minutes. All Machines are created through the API, and the data is on the disk.
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { residentMb } from "../processes.ts";
import { ask } from "./ask.ts";
import { command, start, stop, type Local } from "./command.ts";
import { data, folder, median, milliseconds, report, run, say } from "./run.ts";
import { startBare } from "./startBare.ts";

const { values: options } = parseArgs({
  options: {
    machines: { type: "string", default: "100000" },
    floor: { type: "string", default: "1000" },
    rounds: { type: "string", default: "5" },
  },
});
const rounds = Number(options.rounds);

const perApp = 1000;
const clients = 16;
/** Number of creates in a round. */
const creates = 2000;
const pageSize = 100;

const config = {
  image: "registry.example.com/web:v1",
  guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
  env: { PORT: "8080" },
  services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
};

/** A service under measurement. */
class Side {
  readonly data: string;
  readonly machines: number;
  #local: Local | undefined;
  #tokenOfSmall = "";

  constructor(data: string, machines: number) {
    this.data = data;
    this.machines = machines;
  }

  get local(): Local {
    if (!this.#local) throw new Error("the service is not running");
    return this.#local;
  }

  /** The service for a client of the small organization. */
  get small(): Pick<Local, "url" | "token"> {
    return { url: this.local.url, token: this.#tokenOfSmall };
  }

  get name(): string {
    return `${this.machines.toLocaleString("en")} Machines`;
  }

  /** Seconds from the command until the first answer about Machines. */
  async start(): Promise<number> {
    const ms = await milliseconds(async () => {
      this.#local = await start(this.data);
      await ask(this.#local, "/v1/orgs/personal/machines?limit=1");
    });
    return ms / 1000;
  }

  stop(): Promise<void> {
    return stop(this.data);
  }

  async kill(): Promise<void> {
    const { local } = this;
    process.kill(local.pid, "SIGKILL");
    while (await answers(local));
  }

  get(path: string): Promise<string> {
    return ask(this.local, path);
  }

  /** Creates an organization with one Machine beside the many, and a Machine alone in its region. */
  async addFew(): Promise<void> {
    await this.makeApp("more");
    await this.create("more", "syd");
    await command("org", "create", "small", "--data", this.data);
    this.#tokenOfSmall = (await command("token", "create", "--org", "small", "--data", this.data)).trim();
    await ask(this.small, "/v1/apps", "POST", { name: "small", org_slug: "small" });
    await ask(this.small, "/v1/apps/small/machines", "POST", { config });
  }

  create(app: string, region = "ams"): Promise<string> {
    return ask(this.local, `/v1/apps/${app}/machines`, "POST", { config, region });
  }

  makeApp(name: string): Promise<string> {
    return ask(this.local, "/v1/apps", "POST", { name, org_slug: "personal" });
  }
}

const answers = (local: Local): Promise<boolean> =>
  ask(local, "/healthz").then(
    () => true,
    () => false,
  );

/** Repeats a request by several clients. Returns the milliseconds of each, and the number of requests per second. */
async function repeat(count: number, lanes: number, act: (index: number) => Promise<unknown>) {
  const times: number[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      times.push(await milliseconds(() => act(index)));
    }
  };
  const ms = await milliseconds(() => Promise.all(Array.from({ length: lanes }, lane)));
  return { times, perSecond: (count / ms) * 1000 };
}

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0;

/** Creates the Apps and their Machines, and waits until all are started. */
async function fill(side: Side): Promise<void> {
  await side.start();
  const apps = Math.ceil(side.machines / perApp);
  for (let app = 0; app < apps; app++) await side.makeApp(`app-${app}`);
  // A region has room for 100,000.
  const { perSecond } = await repeat(side.machines, 64, (index) =>
    side.create(`app-${Math.floor(index / perApp)}`, index % 2 ? "ams" : "fra"),
  );
  say(`${side.name}: created, ${perSecond.toFixed(0)}/s`);
  let waiting = true;
  while (waiting) waiting = /[{,]state="(creating|created|starting)"\} [1-9]/.test(await side.get("/metrics"));
}

/** Tells the system to drop its copy of the database in memory, as after a restart of the computer. */
const forget = ({ data: dir }: Side): void =>
  void execFileSync("dd", ["iflag=nocache", "count=0", `if=${join(dir, "service.db")}`, "of=/dev/null"], {
    stdio: "ignore",
  });

/** Measures something of both services in turn. */
async function inTurn(sides: readonly Side[], measure: (side: Side) => Promise<number>): Promise<number[]> {
  const found = sides.map((): number[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [at, side] of sides.entries()) found[at]?.push(await measure(side));
  return found.map(median);
}

const compare = (what: string, values: readonly number[], format: (value: number) => string, floor = ""): void => {
  const [many = 0, few = 0] = values;
  report(what, format(many), format(few), (many / few).toFixed(2), floor);
};

const seconds = (value: number): string => `${value.toFixed(2)} s`;
const ms = (value: number): string => `${value.toFixed(1)} ms`;

async function starting(sides: readonly Side[]): Promise<void> {
  const after = (end: (side: Side) => Promise<void>): Promise<number[]> =>
    inTurn(sides, async (side) => {
      await end(side);
      return side.start();
    });
  compare("start after a stop", await after((side) => side.stop()), seconds);
  const cold = await after(async (side) => {
    await side.stop();
    forget(side);
  });
  compare("start after a stop, the database not in the system's memory", cold, seconds);
  const killed = await after(async (side) => {
    await repeat(creates, clients, () => side.create("more"));
    await side.kill();
  });
  compare(`start after kill -9 among creates`, killed, seconds);
}

/** The cursor of a page behind most of the list. */
async function deepCursor(side: Side): Promise<string> {
  let cursor = "";
  for (let read = 0; read < side.machines * 0.9; read += 1000) {
    const page = await side.get(`/v1/orgs/personal/machines?summary=true&limit=1000&cursor=${cursor}`);
    cursor = (JSON.parse(page) as { readonly next_cursor: string }).next_cursor;
  }
  return cursor;
}

async function listing(sides: readonly Side[]): Promise<void> {
  const [first] = sides;
  if (!first) return;
  const page = `/v1/orgs/personal/machines?limit=${pageSize}`;
  const deep = new Map<Side, string>();
  for (const side of sides) deep.set(side, await deepCursor(side));
  const once = async (read: () => Promise<string>): Promise<number> => median((await repeat(50, 1, read)).times);
  const reads: readonly (readonly [string, (side: Side) => Promise<string>])[] = [
    [`first page of ${pageSize} of the organization`, (side) => side.get(page)],
    [`page of ${pageSize} after 90% of it`, (side) => side.get(`${page}&cursor=${deep.get(side) ?? ""}`)],
    ["page of a region with one Machine", (side) => side.get(`${page}&region=syd`)],
    ["page of another organization, with one Machine", (side) => ask(side.small, "/v1/orgs/small/machines")],
    [`list of an App's ${perApp.toLocaleString("en")} Machines`, (side) => side.get("/v1/apps/app-0/machines")],
    ["metrics", (side) => side.get("/metrics")],
  ];
  for (const [what, read] of reads) {
    const bare = await startBare(await read(first));
    const both = await inTurn(sides, (side) => once(() => read(side)));
    compare(what, both, ms, ms(await once(() => ask({ url: bare.url, token: "" }, "/"))));
    bare.process.kill();
  }
}

async function creating(sides: readonly Side[]): Promise<void> {
  const [first] = sides;
  if (!first) return;
  const machine = await first.create("more");
  const bare = await startBare(machine, join(folder, "bare.db"));
  const post = (): Promise<string> => ask({ url: bare.url, token: "" }, "/", "POST", { config });
  const measure = async (create: () => Promise<string>) => {
    const { times } = await repeat(200, 1, create);
    return {
      half: median(times),
      most: quantile(times, 0.99),
      rate: (await repeat(creates, clients, create)).perSecond,
    };
  };
  const found = [...sides, bare].map((): Awaited<ReturnType<typeof measure>>[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [at, side] of [...sides, bare].entries())
      found[at]?.push(await measure(side instanceof Side ? () => side.create("more") : post));
  const compared = (
    what: string,
    of: (one: Awaited<ReturnType<typeof measure>>) => number,
    format: (value: number) => string,
  ) => {
    const values = found.map((one) => median(one.map(of)));
    compare(what, values, format, format(values[2] ?? 0));
  };
  compared("one create, half of them within", ({ half }) => half, ms);
  compared("one create, 99% within", ({ most }) => most, ms);
  compared(
    `creates by ${clients} clients`,
    ({ rate }) => rate,
    (value) => `${value.toFixed(0)}/s`,
  );
  bare.process.kill();
}

async function bench(): Promise<void> {
  say(`${cpus().length} × ${cpus()[0]?.model}, Node.js ${process.versions.node}`);
  const sides = [new Side(data, Number(options.machines)), new Side(join(folder, "few"), Number(options.floor))];
  try {
    for (const side of sides) {
      await fill(side);
      await side.addFew();
    }
    const mb = (value: number): string => `${value.toFixed(0)} MB`;
    compare(
      "memory after that",
      sides.map(({ local }) => residentMb(local.pid) ?? 0),
      mb,
    );
    await Promise.all(sides.map((side) => side.stop()));
    compare(
      "database",
      sides.map(({ data: dir }) => statSync(join(dir, "service.db")).size / 1e6),
      mb,
    );
    for (const side of sides) await side.start();
    await starting(sides);
    compare(
      "memory after a start",
      sides.map(({ local }) => residentMb(local.pid) ?? 0),
      mb,
    );
    await listing(sides);
    await creating(sides);
    compare(
      "memory after all",
      sides.map(({ local }) => residentMb(local.pid) ?? 0),
      mb,
    );
  } finally {
    for (const side of sides) await side.stop();
  }
}

void run(["what", "many Machines", "few", "ratio", "bare server"], bench);
