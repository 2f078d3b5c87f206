// start: its options, also as environment variables, and its exit.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startArguments, type LocalOptions } from "../../service/local/options.ts";
import { readRegions } from "../../service/local/regionsFile.ts";
import { makeCertificate } from "../support/certificates.ts";
import { caller } from "./client.ts";
import { command, folder, foreground, start } from "./command.ts";
import { thoroughTest } from "../support/thorough.ts";

/** Writes a file beside a data folder and returns its path. */
function beside(data: string, name: string, content: object | string): string {
  const file = join(data, "..", name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

const everyOption = {
  data: "/data",
  listen: "127.0.0.1:0",
  tlsCert: "/cert.pem",
  tlsKey: "/key.pem",
  delays: "none",
  rateLimits: "documented",
  regions: "/regions.json",
  runtime: "docker",
  kubeconfig: ["ams=/clusters/ams", "iad=/clusters/iad"],
  ingressClass: "public",
  registries: ["public", "ghcr.io"],
  capabilities: ["NET_RAW"],
  reach: ["10.1.2.0/24"],
  postgres: "embedded",
  postgresCatalog: "postgresql",
  postgresBackup: "s3:https://s3.example.com/bucket",
  postgresBackupEnvironment: "/environment",
  acme: "https://127.0.0.1:1/directory",
  acmeAddress: "machines-service:4280",
  certificates: "cert-manager",
  clusterIssuer: "letsencrypt",
  dns: "127.0.0.1:53",
  pgbouncer: "/usr/sbin/pgbouncer",
  http: "0",
  https: "0",
  public: ["0.0.0.0", "::"],
  hostname: "machines.example.com",
  appsDomain: "apps.example.com",
  trustProxy: ["10.0.0.0/8", "fd00::/8"],
  proxyProtocol: true,
  proxyConnections: "100",
  proxyConnectionsOfAddress: "10",
  proxyIdle: "60",
  drain: "10",
  strict: true,
  allowHosts: ["one", "two"],
  allowRemote: true,
  admin: "127.0.0.1:0",
  console: "write",
  oidcIssuer: "https://id.example.com",
  oidcClient: "machines",
  oidcSecretFile: "/secret",
  oidcGroups: "groups",
  oidcScope: "openid",
  otlpEndpoint: "http://127.0.0.1:1",
  store: "postgres://127.0.0.1:1/store",
  keyFile: "/key",
  advertise: "http://127.0.0.1:1",
  keepLog: "7d",
  keepHistory: "30d",
  backup: "/backups",
  backupEvery: "12h",
  backupKeep: "7d,4w",
  backupPassphraseFile: "/passphrase",
  backupPassphraseCommand: "cat /passphrase",
  backupEnvironment: "/environment",
  restic: "/usr/bin/restic",
} as const satisfies Required<LocalOptions>;

test("start describes every option and its variable", async () => {
  const { out } = await command(["start", "--help"]);
  const options = startArguments(everyOption).filter((argument) => argument.startsWith("--"));
  expect(new Set(options).size).toBe(Object.keys(everyOption).length);
  for (const option of [...options, "--json"]) {
    expect(out).toContain(`${option} `);
    const prefix =
      { "--runtime": "MACHINES_", "--postgres": "MACHINES_", "--otlp-endpoint": "OTEL_EXPORTER_" }[option] ??
      "MACHINES_SERVICE_";
    expect(out).toContain(`${prefix}${option.slice(2).replace(/-/g, "_").toUpperCase()}`);
  }
});

test("in the foreground it prints its address, logs to stderr, and exits with 0 on a signal", async () => {
  const data = folder();
  const { url, pid, token, end } = await foreground(data);
  expect((await caller(url, token)("GET", "/platform/regions")).status).toBe(200);
  const printed = { url, pid, data, runtime: "simulated", docs: `${url}/docs`, console: `${url}/` };
  expect(await command(["status", "--json", "--data", data])).toMatchObject({
    out: `${JSON.stringify(printed)}\n`,
  });
  process.kill(pid, "SIGINT");
  const { code, out, err } = await end;
  expect([code, JSON.parse(out)]).toEqual([0, printed]);
  expect(err.split("\n").map((line) => /"msg":"(\w+)"/.exec(line)?.[1])).toEqual(
    expect.arrayContaining(["ready", "request", "closing"]),
  );
  expect(await command(["status", "--data", data])).toMatchObject({ code: 3 });
});

test("in the background it keeps the options it was started with", async () => {
  const data = folder();
  beside(data, "regions.json", { regions: [{ code: "fra", capacity: 1 }] });
  const elsewhere = join(data, "../elsewhere");
  mkdirSync(elsewhere);
  const { out, err } = await command(
    [
      ...["start", "--detach", "--json", "--data", data, "--listen", "127.0.0.1:0", "--delays", "none", "--strict"],
      ...["--rate-limits", "documented", "--regions", "../regions.json", "--allow-host", "one.example", "two.example"],
      ...["--admin", "127.0.0.1:0"],
    ],
    process.env,
    elsewhere,
  );
  expect(err).toBe("");
  const { url, admin } = JSON.parse(out) as { url: string; admin: string };
  const token = readFileSync(join(data, "token"), "utf8").trim();
  const call = caller(url, token);
  const { body } = await call("GET", "/platform/regions");
  expect([body.nearest, body.regions.map(({ code }: { code: string }) => code)]).toEqual(["fra", ["fra"]]);
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal", nonsense: 1 })).status).toBe(400);
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  const made = await call("POST", "/apps/web/machines", { config: { image: "nginx" } });
  expect((await call("GET", `/apps/web/machines/${made.body.id}`)).body.state).toBe("started");
  expect((await call("POST", "/apps/web/machines", { config: { image: "nginx" } })).status).toBe(422); // the region is full
  // Requests without a pause are refused sooner or later, however slow this computer is.
  const statuses = async () =>
    (await Promise.all(Array.from({ length: 20 }, () => call("GET", "/apps/web")))).map(({ status }) => status);
  await expect.poll(statuses, { interval: 0 }).toContain(429);
  expect((await fetch(`${admin}/faults`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
  const adminToken = readFileSync(join(data, "admin-token"), "utf8").trim();
  expect((await fetch(`${admin}/faults`, { headers: { authorization: `Bearer ${adminToken}` } })).status).toBe(200);
  expect(await statusFor(url, token, "two.example")).toBe(200);
  expect(await statusFor(url, token, "three.example")).toBe(403);
});

/** Status of a request with another host name, which fetch cannot send. */
function statusFor(url: string, token: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `GET /v1/platform/regions HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
      );
    });
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString()));
    socket.once("error", reject).once("close", () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])));
  });
}

test("every option may come from the environment; the command line takes precedence", async () => {
  const data = folder();
  const env = {
    MACHINES_SERVICE_LISTEN: "127.0.0.1:0",
    MACHINES_SERVICE_REGIONS: beside(data, "regions.json", { regions: [{ code: "ams" }, { code: "fra" }] }),
    MACHINES_SERVICE_STRICT: "true",
    MACHINES_SERVICE_ALLOW_HOST: "one.example,two.example",
    MACHINES_SERVICE_ALLOW_REMOTE: "false",
    MACHINES_SERVICE_RATE_LIMITS: "documented",
    MACHINES_SERVICE_TLS_CERT: "",
  };
  const { url, token } = await foreground(data, ["--rate-limits", "off"], env);
  const call = caller(url, token);
  for (let i = 0; i < 5; i++) expect((await call("GET", "/platform/regions")).body.regions).toHaveLength(2);
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal", nonsense: 1 })).status).toBe(400);
  expect(await statusFor(url, token, "two.example")).toBe(200);
});

test("a flag in the environment can be off, and accepts only true and false", async () => {
  const off = await foreground(folder(), [], { MACHINES_SERVICE_STRICT: "false" });
  expect(
    (await caller(off.url, off.token)("POST", "/apps", { name: "web", org_slug: "personal", nonsense: 1 })).status,
  ).toBe(201);
  const env = { ...process.env, MACHINES_SERVICE_STRICT: "perhaps" };
  expect(await command(["status", "--data", folder()], env)).toEqual({
    code: 1,
    out: "",
    err: 'machines-service: invalid MACHINES_SERVICE_STRICT, got "perhaps", must be true or false\n',
  });
});

/** A certificate and its key as files beside a data folder, and the arguments that name them. */
function withCertificate(data: string, ...hosts: string[]) {
  const { fullchain, private_key } = makeCertificate({
    hosts,
    from: new Date(),
    until: new Date(Date.now() + 3600_000),
  });
  const [cert, key] = [beside(data, "cert.pem", fullchain), beside(data, "key.pem", private_key)];
  chmodSync(key, 0o600);
  return { fullchain, cert, key, args: ["--tls-cert", cert, "--tls-key", key] };
}

function get(url: string, token: string, options: { ca: string; servername: string }): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(url, { headers, allowPartialTrustChain: true, ...options }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode));
    });
    sent.once("error", reject);
    sent.end();
  });
}

test("with a certificate it serves HTTPS, at any address, and its own commands can use it", async () => {
  const data = folder();
  const { fullchain, args } = withCertificate(data, "machines.example");
  const { out, err } = await command(["start", "--detach", "--json", "--data", data, "--listen", "0.0.0.0:0", ...args]);
  expect(err).toBe("");
  const { url } = JSON.parse(out) as { url: string };
  expect(url).toMatch(/^https:\/\/0\.0\.0\.0:\d+$/);
  const token = readFileSync(join(data, "token"), "utf8").trim();
  const regions = `${url.replace("0.0.0.0", "127.0.0.1")}/v1/platform/regions`;
  expect(await get(regions, token, { ca: fullchain, servername: "machines.example" })).toBe(200);
  await expect(get(regions, token, { ca: fullchain, servername: "other.example" })).rejects.toThrow("other.example");
  await expect(fetch(regions.replace("https", "http"))).rejects.toThrow("fetch failed");
  expect((await command(["start", "--detach", "--json", "--data", data])).out).toBe(out);
  const seed = beside(data, "seed.json", {
    apps: [{ name: "web", machines: [{ name: "m", config: { image: "i" } }] }],
  });
  expect(await command(["seed", seed, "--data", data])).toMatchObject({ code: 0, err: "" });
});

test("a private key that every user can read causes one warning", async () => {
  const data = folder();
  const { key, args } = withCertificate(data, "machines.example");
  chmodSync(key, 0o644);
  const { code, err } = await start(data, ...args);
  expect([code, err]).toEqual([
    0,
    `machines-service: --tls-key: every user of this computer can read ${key}; remove that permission with chmod o-r\n`,
  ]);
});

thoroughTest("an unusable certificate causes one sentence", async () => {
  const data = folder();
  const { cert, key } = withCertificate(data, "machines.example");
  const other = beside(data, "other.pem", makeCertificate({ hosts: ["other.example"] }).private_key);
  for (const file of [cert, other]) chmodSync(file, 0o600);
  const cases = [
    [["--tls-cert", cert], "--tls-cert needs --tls-key, the file with its private key"],
    [["--tls-key", key], "--tls-key needs --tls-cert, the file with its certificate"],
    [["--tls-cert", "/nowhere", "--tls-key", key], "--tls-cert: /nowhere cannot be read (ENOENT)"],
    [["--tls-cert", key, "--tls-key", key], `--tls-cert: ${key} holds no certificate in PEM`],
    [["--tls-cert", cert, "--tls-key", cert], `--tls-key: ${cert} holds no private key in PEM`],
    [["--tls-cert", cert, "--tls-key", other], `--tls-key: ${other} is not the private key of the certificate`],
  ] as const;
  for (const [args, message] of cases) {
    const { code, out, err } = await command(["start", "--data", data, "--listen", "127.0.0.1:0", ...args]);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  }
});

const lab = { code: "lab", name: "The lab", geo_region: "europe", latitude: 52.5, longitude: 13.4 };

test("regions: omitted values are the platform's, capacity is a number or one of each kind", async () => {
  const data = folder();
  const regions = [{ code: "fra", capacity: { performance: 0 } }, { code: "ams", deprecated: true }, lab];
  const { url, token } = await foreground(data, ["--regions", beside(data, "r.json", { regions })]);
  const { body } = await caller(url, token)("GET", "/platform/regions");
  expect(body.nearest).toBe("fra");
  expect(body.regions).toEqual([
    expect.objectContaining({ code: "fra", name: "Frankfurt, Germany", latitude: 50.11, capacity: 100_000 }),
    expect.objectContaining({ code: "ams", name: "Amsterdam, Netherlands", deprecated: true }),
    expect.objectContaining({ ...lab, gateway_available: true, requires_paid_plan: false, mpg_available: true }),
  ]);
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const guest = { cpu_kind: "performance", cpus: 1, memory_mb: 2048 };
  const config = { image: "nginx", guest };
  expect((await call("POST", "/apps/web/machines", { region: "fra", config })).status).toBe(422);
  expect((await call("POST", "/apps/web/machines", { region: "lab", config })).status).toBe(200);
});

test.each([
  [{ regions: [] }, "invalid regions, got [], must hold at least one region"],
  [
    { regions: [{ code: "lab" }] },
    "invalid regions[0].name, got nothing, must be given: lab is not in the built-in table",
  ],
  [{ regions: [{ code: "fra" }, { code: "fra" }] }, 'invalid regions[1].code, got "fra", must not occur twice'],
  [{ regions: [{ code: "fra", capacity: -1 }] }, "invalid regions[0].capacity, got -1, must be a number of Machines"],
  [
    { regions: [{ code: "fra", capacity: { gpu: 1 } }] },
    'invalid regions[0].capacity, got {"gpu":1}, must be a number',
  ],
  [{ regions: [{ code: "fra", room: 1 }] }, "unknown regions[0].room, allowed are code, capacity, name"],
  [{ nearest: "ams", regions: [{ code: "fra" }] }, 'invalid nearest, got "ams", allowed are fra'],
])("invalid regions are refused: %j", (content, message) => {
  const file = beside(folder(), "r.json", content);
  expect(() => readRegions(file)).toThrow(`--regions: ${file}: ${message}`);
});

test.each([
  [["--public", "0.0.0.0"], "--public needs --runtime docker: other runtimes have no proxy of this service"],
  [
    ["--public", "example.com", "--runtime", "docker"],
    '--public takes IP addresses such as 0.0.0.0 or 203.0.113.5, got "example.com"',
  ],
  [["--hostname", "a.example.com"], "--hostname needs --public: without it, other computers do not reach the proxy"],
  [["--apps-domain", "example.com"], "--apps-domain needs --public"],
  ...["localhost", "a", "web.localhost", "1.2.3.4", "a_b.example.com", "*.example.com", "x.machines.test"].map(
    (name): [string[], string] => [
      ["--runtime", "docker", "--public", "::", "--hostname", name],
      `--hostname takes a name in the DNS such as machines.example.com, got ${JSON.stringify(name)}`,
    ],
  ),
  [["--kubeconfig", "ams=/a"], "--kubeconfig needs --runtime kubernetes: other runtimes use no cluster"],
  [
    ["--runtime", "kubernetes", "--kubeconfig", "/a"],
    '--kubeconfig takes REGION=FILE, such as ams=/etc/clusters/ams, got "/a"',
  ],
  [["--runtime", "kubernetes", "--kubeconfig", "xyz=/a"], '--kubeconfig names the region "xyz"; the regions are ams, '],
  [
    ["--runtime", "kubernetes", "--kubeconfig", "ams=/a,ams=/b"],
    '--kubeconfig names two clusters for the region "ams"',
  ],
  [
    ["--runtime", "kubernetes", "--kubeconfig", "ams=/nowhere"],
    "/nowhere names no Kubernetes cluster: ENOENT: no such file or directory",
  ],
  [["--postgres", "cnpg"], "--postgres cnpg needs --runtime kubernetes: CloudNativePG runs in that cluster"],
  [["--postgres-catalog", "postgresql"], "--postgres-catalog needs --postgres cnpg: other engines run no images"],
  [
    ["--postgres-backup", "s3:https://s3.example.com/bucket"],
    "--postgres-backup needs --postgres cnpg: other engines have --backup",
  ],
  [["--postgres-backup-environment", "/a"], "--postgres-backup-environment needs --postgres-backup, the address"],
  [
    ["--runtime", "kubernetes", "--postgres", "cnpg", "--postgres-backup", "/backups"],
    "--postgres-backup takes s3:https://HOST/BUCKET or s3:https://HOST/BUCKET/PREFIX, got another address",
  ],
  [
    ["--runtime", "kubernetes", "--postgres", "cnpg", "--postgres-backup", "s3:https://s3.example.com/bucket"],
    "--postgres-backup needs AWS_ACCESS_KEY_ID, in the file of --postgres-backup-environment or as a variable",
  ],
  [
    [
      ...["--runtime", "kubernetes", "--postgres", "cnpg", "--postgres-backup", "s3:s3.example.com/bucket"],
      ...["--postgres-backup-environment", "/nowhere"],
    ],
    "--postgres-backup-environment /nowhere cannot be read: ENOENT",
  ],
  [
    ["--runtime", "kubernetes", "--postgres", "cnpg", "--kubeconfig", "ams=/a"],
    "--postgres cnpg cannot be combined with --kubeconfig: it needs all regions in one cluster",
  ],
  [["--acme", "https://ca.example/directory"], "--acme needs --runtime docker or kubernetes: the authority"],
  [["--cluster-issuer", "public"], "--cluster-issuer needs --certificates cert-manager"],
  [["--certificates", "cert-manager"], "--certificates cert-manager needs --runtime kubernetes"],
  [
    ["--runtime", "kubernetes", "--certificates", "cert-manager"],
    "--certificates cert-manager needs --cluster-issuer, the name of a ClusterIssuer of the cluster",
  ],
  [["--acme-address", "127.0.0.1:1"], "--acme-address needs --acme and --runtime kubernetes"],
  [
    [
      ...["--runtime", "kubernetes", "--acme", "https://ca.example/directory"],
      ...["--ingress-class", "none", "--acme-address", "127.0.0.1:1"],
    ],
    "--acme-address cannot be combined with --ingress-class none: the proxies answer the authority",
  ],
  [
    ["--runtime", "kubernetes", "--acme", "https://ca.example/directory"],
    "--acme with --runtime kubernetes needs --acme-address, where the cluster reaches this service",
  ],
  [
    ["--runtime", "kubernetes", "--acme", "https://ca.example/directory", "--acme-address", "Service"],
    '--acme-address takes SERVICE:PORT or IP:PORT, such as machines-service:4280, got "Service"',
  ],
  [["--ingress-class", "public"], "--ingress-class needs --runtime kubernetes: other runtimes have no Ingresses"],
  [
    ["--runtime", "docker", "--acme", "http://ca.example/directory"],
    '--acme takes the https address of an ACME directory, got "http://ca.example/directory"',
  ],
  [
    ["--dns", "localhost"],
    '--dns takes simulated, system, or the address of a resolver such as 127.0.0.1:53, got "localhost"',
  ],
  [
    ["--trust-proxy", "10.0.0.0/33"],
    '--trust-proxy takes networks or addresses such as 10.0.0.0/8 or 203.0.113.5, got "10.0.0.0/33"',
  ],
  [["--proxy-protocol"], "--proxy-protocol needs --trust-proxy, the networks whose connections begin with it"],
  [["--proxy-protocol", "--trust-proxy", "::1"], "--proxy-protocol needs --runtime docker"],
  [["--drain", "601"], '--drain takes seconds from 0 to 600, got "601"'],
  [["--drain", "2s"], '--drain takes seconds from 0 to 600, got "2s"'],
  [["--proxy-idle", "0"], '--proxy-idle takes a whole number from 1 to 1000000000, got "0"'],
  [["--proxy-connections", "1e3"], '--proxy-connections takes a whole number from 1 to 1000000000, got "1e3"'],
])("%j causes one sentence", async (args, message) => {
  const { code, out, err } = await command(["start", "--data", folder(), "--listen", "127.0.0.1:0", ...args]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
  expect(err.trim().split("\n")).toHaveLength(1);
});

test("a missing file of regions causes one sentence", async () => {
  expect(await command(["start", "--data", folder(), "--regions", "/nowhere/r.json"])).toEqual({
    code: 1,
    out: "",
    err: "machines-service: --regions: /nowhere/r.json cannot be read (ENOENT)\n",
  });
});

test.each([
  ["0.0.0.0:0", "--admin needs an address that only this computer can reach"],
  ["nonsense", "--admin takes an address such as"],
])("an admin listener at %s is refused", async (address, message) => {
  const { code, err } = await command(["start", "--data", folder(), "--listen", "127.0.0.1:0", "--admin", address]);
  expect([code, err]).toEqual([1, expect.stringContaining(message)]);
});

thoroughTest("it exits within five seconds whatever its clients do, and answers long polls", async () => {
  const data = folder();
  const { url, pid, token, end } = await foreground(data, ["--delays", "none"]);
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = (await call("POST", "/apps/web/machines", { config: { image: "nginx" }, skip_launch: true })).body;
  const held = call("GET", `/apps/web/machines/${id}/wait`);
  const { hostname, port } = new URL(url);
  const header = `Host: ${hostname}\r\nAuthorization: Bearer ${token}\r\n`;
  // One sends an endless body, one keeps sending requests on its connection.
  const slow = connect(Number(port), hostname, () =>
    slow.write(`POST /v1/apps HTTP/1.1\r\n${header}Content-Length: 1000\r\n\r\n{`),
  );
  let cutOff = "";
  slow.on("data", (part: Buffer) => (cutOff += part.toString()));
  const answers: string[] = [];
  const eager = connect(Number(port), hostname);
  const ask = (): boolean => eager.write(`GET /v1/apps/web HTTP/1.1\r\n${header}\r\n`);
  eager.on("data", (part: Buffer) => {
    answers.push(part.toString());
    ask();
  });
  for (const socket of [slow, eager]) socket.on("error", () => {}); // it is cut off in the end
  ask();
  await expect.poll(() => answers.length).toBeGreaterThan(10);
  process.kill(pid, "SIGTERM");
  expect((await held).status).toBe(503);
  expect((await end).code).toBe(0);
  expect(cutOff, "not waited for until its time was over").toBe("");
  const again = await foreground(data);
  expect((await caller(again.url, again.token)("GET", "/apps/web")).status).toBe(200);
});
