// Secrets never appear in plain text (F33): a program has a secret in every input and output that allows one, and all
// output and files are searched while it is created, changed, broken and destroyed.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { filesBelow, leaks, type Readable } from "../support/canaries.ts";
import { makeCertificate } from "../support/certificates.ts";
import { allOr, isThorough } from "../support/extent.mts";
import { bindingsOr, Stack, type Binding } from "../support/stack.ts";
import { thoroughTest } from "../support/thorough.ts";
import { startService, type TestService } from "../support/startService.ts";

const certificate = makeCertificate({ hosts: ["own.example.com"] });
/** One whose private key is never stored. */
const unstoredCertificate = makeCertificate({ hosts: ["unstored.example.com"] });
// Pulumi's mark of secrets in gRPC messages.
const [sig, sigOfSecret] = ["4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"];

/** The program's secrets, with characters that JSON and URLs escape. */
const canaries = (round: number, binding: Binding): Record<string, string> => ({
  env: `c4n4ry-env-${round} "é/+&%`,
  file: `c4n4ry-file-${round} "é/+&%`,
  // A dynamic resource does not know that its image is secret, and `imageRef` repeats it (docs/how-it-works.md).
  ...(binding === "pulumi-machines-plugin" ? { image: `c4n4ry-image-${round}` } : {}),
  header: `c4n4ry-header-${round} "/+&%`,
  appSecret: `c4n4ry-app-secret-${round} "é/+&%`,
  secret: `c4n4ry-secret-${round} "é/+&%`,
  command: `c4n4ry-command-${round} /+&%`,
  stdin: `c4n4ry-stdin-${round} /+&%`,
  unstored: `c4n4ry-unstored-${round} "é/+&%`,
  unstoredOfAll: `c4n4ry-unstored-of-all-${round} "é/+&%`,
});
const constant: Readonly<Record<string, string>> = {
  key: "c4n4ry-key-of-exactly-32-bytes-x",
  letter: 'c4n4ry-letter "é/+&%',
  agreement: 'c4n4ry-agreement "é/+&%',
};

/**
 * The CLI's output without Pulumi's own tracing of calls (`-v=9`, `--debug`), which prints everything for any provider, as
 * docs/secrets.md says.
 */
const withoutTracing = (output: string): string =>
  output
    .replaceAll(/^\{"time":.*"msg":"(?:Unm|M)arshaling property for RPC.*$/gm, "")
    .replaceAll(/^\{"time":.*"msg":"(?:eventSink::Debug|\w+ RPC (?:prepared|finished)).*$/gm, "")
    .replaceAll(/debug: \w+ RPC (?:prepared|finished)[^]*?(?=\n +\S|\n@|\n\w+:|\n\n|$)/g, "");

/** The logged answer of a call, without the values that the answer marks as secret. */
function plainTextOf(call: string): string {
  const { response } = JSON.parse(call) as { response?: unknown };
  return JSON.stringify(response ?? null, (_, value: unknown) =>
    typeof value === "object" && value !== null && (value as Record<string, unknown>)[sig] === sigOfSecret
      ? "[secret]"
      : value,
  );
}

/** The names of the inputs of each pending operation in a checkpoint. */
function operationsIn(checkpoint: string): string[][] {
  const { latest } = (JSON.parse(checkpoint) as { checkpoint: { latest?: { pending_operations?: Operation[] } } })
    .checkpoint;
  return (latest?.pending_operations ?? []).map(({ resource: { inputs = {} } }) => Object.keys(inputs));
}

interface Operation {
  readonly resource: { readonly inputs?: Readonly<Record<string, unknown>> };
}

// Those of `sealed` are secret because of the schema, all others because of the program.
const program = `
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const canary: Record<string, string> = JSON.parse(readFileSync("canaries.json", "utf8"));
const sealed: Record<string, string> = canary;
const secret = (name: string) => pulumi.secret(canary[name]);
const base64 = (text: string) => Buffer.from(text).toString("base64");
const app = new machines.App("vault", { name: "vault" });
new machines.AppSecrets("secrets", { app: app.id, values: { ONE: sealed.appSecret } });
new machines.Secret("secret", { app: app.id, name: "TWO", value: sealed.secret });
const key = new machines.SecretKey("key", { app: app.id, name: "KEY", type: "nacl_secretbox", value: base64(sealed.key) });
const signing = new machines.SecretKey("signing", { app: app.id, name: "SIGNING", type: "es256" });
const letter = new machines.Ciphertext("letter", { app: app.id, key: key.id, plaintext: base64(sealed.letter) });
const agreed = new machines.Signature("agreed", { app: app.id, key: signing.id, plaintext: base64(sealed.agreement) });
new machines.CustomCertificate("own", { app: app.id, hostname: "own.example.com", fullchain: canary.fullchain, privateKey: sealed.privateKey });
const annex = new machines.App("annex", { name: "annex" });
const version = Number(canary.round);
new machines.Secret("unstored", { app: annex.id, name: "ONE", valueWo: sealed.unstored, valueVersion: version });
new machines.AppSecrets("unstored-of-all", { app: annex.id, valuesWo: { TWO: sealed.unstoredOfAll }, valuesVersion: version });
new machines.CustomCertificate("unstored-key", {
  app: annex.id,
  hostname: "unstored.example.com",
  fullchain: canary.unstoredChain,
  privateKeyWo: sealed.unstoredKey,
  privateKeyVersion: version,
});
export const deploy = new machines.DeployToken("deploy", { app: app.id, expiry: "24h" });
const web = new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: {
    image: canary.image === undefined ? "registry.example.com/a:1" : pulumi.interpolate\`registry.example.com/\${secret("image")}:1\`,
    env: { PLAIN: "plainly-visible", PASSWORD: secret("env") },
    files: [{ guestPath: "/etc/secret", rawValue: secret("file").apply(base64) }],
    services: [{
      protocol: "tcp",
      internalPort: 8080,
      ports: [{ port: 80, handlers: ["http"] }],
      checks: [{ type: "http", path: "/", interval: "60s", timeout: "5s", headers: [{ name: "Authorization", values: [secret("header")] }] }],
    }],
  },
});
const command = new machines.MachineCommand("command", {
  app: app.id,
  machine: web.id,
  create: ["echo", secret("command")],
  delete: ["echo", secret("command")],
  stdin: secret("stdin"),
  triggers: { round: canary.round },
});
const cluster = new machines.PostgresCluster("cluster", { region: "fra", plan: "basic", deletionProtection: false });
const user = new machines.PostgresUser("user", { cluster: cluster.id, username: "shop", role: "writer" });
new machines.PostgresAttachment("attachment", { cluster: cluster.id, app: app.id, secretName: "DATABASE_URL", user: user.id, password: user.password });
const credentials = machines.getPostgresCredentialsOutput({ cluster: cluster.id, user: user.id }, { dependsOn: user });
export const said = command.stdout;
export const url = credentials.poolerUri;
export const uri = cluster.directUri;
export const opened = machines.decryptOutput({ app: app.id, key: key.id, ciphertext: letter.ciphertext }).plaintext;
export const verified = machines.verifyOutput({ app: app.id, key: signing.id, plaintext: agreed.plaintext, signature: agreed.signature }).valid;
`;

/** The values of an export with secrets under these names, each with its name and a number. */
function secretsIn(exported: unknown, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  const walk = (at: unknown, name: string): void => {
    if (typeof at !== "object" || at === null) return;
    if ("plaintext" in at && typeof at.plaintext === "string" && names.includes(name)) {
      const value: unknown = JSON.parse(at.plaintext);
      if (typeof value === "string") found[`${name} ${Object.keys(found).length}`] = value;
    }
    for (const [key, inner] of Object.entries(at)) walk(inner, key);
  };
  walk(exported, "");
  return found;
}

describe.each(bindingsOr("pulumi-machines"))("F33: secrets on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  let data: string;
  const log: string[] = [];
  const seen: Readable[] = [];
  /** The state during operations. */
  const pending: Readable[] = [];
  const nonces: Record<string, string> = {};
  let given: Record<string, string> = {};
  let made: Record<string, string> = {};

  beforeAll(async () => {
    stack = new Stack(inject("installed"), "secrets", binding);
    data = join(stack.dir, ".service");
    mkdirSync(data);
    service = await startService({ data, log: { write: (line) => log.push(line) } });
    service.service.app.log.level = "trace";
    service.fail({
      operation: "machines.acquireLease",
      times: "always",
      rewrite: (answer) => {
        const { nonce } = (answer as { data: { nonce: string } }).data;
        nonces[`lease nonce ${Object.keys(nonces).length}`] = nonce;
        return answer;
      },
    });
    // The engine has written the operation down when the service answers it.
    const noteState = (answer: unknown) => {
      pending.push(...filesBelow(join(stack.dir, ".state")).filter(({ what }) => what.endsWith("dev.json")));
      return answer;
    };
    service.fail({ operation: "secrets.set", times: "always", rewrite: noteState });
    stack.program(program);
    say(1);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  /** Changes the program. */
  function say(round: number): void {
    const now = canaries(round, binding);
    given = {
      ...given,
      ...Object.fromEntries(Object.entries(now).map(([name, value]) => [`${name} ${round}`, value])),
    };
    const { fullchain, private_key: privateKey } = certificate;
    const { fullchain: unstoredChain, private_key: unstoredKey } = unstoredCertificate;
    const files = { fullchain, privateKey, unstoredChain, unstoredKey };
    const all = { ...now, ...constant, round: String(round), ...files };
    writeFileSync(join(stack.dir, "canaries.json"), JSON.stringify(all));
  }
  /** Runs the CLI with maximum verbosity, and keeps its output. */
  async function run(...args: string[]): Promise<number> {
    const { code, stdout, stderr } = await stack.run([...args, "--logtostderr", "-v=9"]);
    // In sequence, because concurrent output is mixed within lines.
    for (const said of [stdout, stderr]) seen.push({ what: `pulumi ${args.join(" ")}`, text: withoutTracing(said) });
    return code;
  }
  const linesOf = (name: string, key: string): Record<string, string> =>
    Object.fromEntries(
      key
        .split("\n")
        .filter((line) => line.length > 20 && !line.startsWith("-"))
        .map((line, i) => [`${name} line ${i + 1}`, line]),
    );
  const unstoredLines = linesOf("unstored private key", unstoredCertificate.private_key);
  const lines = { ...linesOf("private key", certificate.private_key), ...unstoredLines };
  const everything = () => ({ ...given, ...constant, ...made, ...nonces, ...lines, "the token": service.token });
  /** The decrypted state, which has no value that must not be in it. */
  async function decrypted(): Promise<unknown> {
    const { stdout } = await stack.run(["stack", "export", "--show-secrets"]);
    // Go escapes the `&` of JSON.
    const state = [{ what: "the decrypted state", text: stdout.replaceAll(/\\+u0026/g, "&") }];
    // Proves that the search works: a value that is stored is found.
    const named = (prefix: string) =>
      Object.fromEntries(Object.entries(given).filter(([name]) => name.startsWith(prefix)));
    expect(leaks(named("secret"), state)).not.toEqual([]);
    expect(leaks({ ...named("unstored"), ...unstoredLines }, state)).toEqual([]);
    return JSON.parse(stdout) as unknown;
  }

  test("creating and reading work", async () => {
    expect(await run("preview", "--diff", "--json")).toBe(0);
    // The preview of `destroy` prints the same values, as a text.
    expect(await run("up", "--yes", "--diff", "--debug", ...allOr([], ["--skip-preview"]))).toBe(0);
    // The last `up` of this story reads everything too.
    if (isThorough) {
      await decrypted();
      expect(await run("up", "--yes", "--skip-preview", "--refresh", "--diff")).toBe(0);
    }
    made = secretsIn(await decrypted(), ["token", "password", "directUri", "poolerUri"]);
    for (const [name, value] of Object.entries(made)) if (value === service.token) delete made[name];
    for (const name of ["token", "password", "directUri", "poolerUri"])
      expect(Object.keys(made).filter((found) => found.startsWith(name))).not.toEqual([]);
  });

  thoroughTest("a changed secret is shown by diffs without its value", async () => {
    say(2);
    expect(await run("up", "--yes", "--diff", "--debug")).toBe(0);
    await decrypted();
    const { web } = stack.state();
    const path = `/v1/apps/${web?.id.replace("/", "/machines/")}`;
    const live = await send<{ config: { env: Record<string, string> } }>(service, "GET", path);
    expect(live.config.env).toEqual({ PLAIN: "plainly-visible", PASSWORD: canaries(2, binding)["env"] });
    await send(service, "POST", path, {
      config: { ...live.config, env: { PLAIN: "moved", PASSWORD: canaries(1, binding)["env"] } },
    });
    expect(await run("refresh", "--yes", "--diff")).toBe(0);
    expect(await run("preview", "--diff")).toBe(0);
  });

  test("errors that quote it, and answers that repeat it, do not print it", async () => {
    say(3);
    const { faults } = service.service;
    const { env = "", secret = "", appSecret = "", command = "", unstored, unstoredOfAll } = canaries(3, binding);
    const echo = { config: { env: { PASSWORD: env } } };
    const refusal = { status: 400, body: { error: `invalid env PASSWORD: ${JSON.stringify(env)} is not allowed` } };
    const cut = { status: 200, body: `{"config":{"env":{"PASSWORD":${JSON.stringify(env)}` };
    const bodies = [
      ...[{ status: 500, body: echo }, refusal, { status: 422, body: `the value ${env} is not allowed` }],
      ...[cut, { status: 200, body: `PASSWORD=${env}` }],
    ];
    // The other operations are refused with their secrets anyway.
    for (const body of allOr(bodies, [cut])) {
      const planned = faults.add(
        { operation: "machines.update", when: "before", times: 10, ...body },
        ...[
          ["secrets.set", "vault", `value "${secret}" is too long`],
          ["secrets.set", "annex", `value "${unstored}" is too long`],
          ["secrets.update", "vault", `value ${appSecret} is too long`],
          ["secrets.update", "annex", `value ${unstoredOfAll} is too long`],
        ].map(([operation = "", app = "", error]) => ({
          ...{ operation, path: `/apps/${app}/`, when: "before" as const, times: 10, status: 400, body: { error } },
        })),
        {
          operation: "machines.exec",
          when: "before",
          times: 10,
          status: 400,
          body: { error: `no such command: ${command}` },
        },
      );
      expect(await run("up", "--yes", "--skip-preview")).not.toBe(0);
      planned.forEach((one) => faults.remove(one));
      await decrypted();
    }
  });

  thoroughTest("invalid and misspelt inputs are reported without their values", async () => {
    const wrong = program
      .replace('env: { PLAIN: "plainly-visible", PASSWORD: secret("env") }', 'env: secret("env")')
      .replace("rawValue: ", "rawValues: ")
      .replace("value: base64(sealed.key)", "value: sealed.letter")
      .replace("privateKey: sealed.privateKey", "privateKey: canary.letter")
      .replace('create: ["echo", secret("command")]', 'create: secret("command") as any');
    stack.program(wrong);
    expect(await run("preview", "--diff")).not.toBe(0);
    stack.program(program);
  });

  if (binding === "pulumi-machines-plugin")
    test("a failed import, and one whose Machine differs", async () => {
      await makeApp(service, "elsewhere");
      const id = await makeMachine(service, "elsewhere", { config: { image: "registry.example.com/a:1" } });
      expect(await run("import", "machines:index:Machine", "none", "elsewhere/3d8d413b29d089", "--yes")).not.toBe(0);
      stack.program(
        `${program}\nnew machines.Machine("other", { app: "elsewhere", config: { image: "registry.example.com/a:1", env: { PASSWORD: secret("env") } } }, { import: "elsewhere/${id}" });`,
      );
      expect(await run("preview", "--diff")).toBe(0);
      stack.program(program);
      await send(service, "DELETE", "/v1/apps/elsewhere?force=true");
    });

  test("no secret was printed or written", async () => {
    stack.env["PULUMI_DEBUG_GRPC"] = join(stack.dir, "grpc.json");
    expect(await run("up", "--yes", "--diff", "--skip-preview", ...allOr([], ["--refresh"]))).toBe(0);
    delete stack.env["PULUMI_DEBUG_GRPC"];
    await run("stack", "output");
    await run("stack", "export");
    await run("stack", "history", "--json");
    expect(await run("destroy", "--yes", "--diff")).toBe(0);
    expect(Object.keys(nonces).length).toBeGreaterThan(1);
    const kept = [...filesBelow(join(stack.dir, ".state")), ...filesBelow(stack.env["PULUMI_HOME"] ?? "")];
    const readable = [...seen, ...kept, { what: "the log of the service", text: log.join("") }];
    expect(kept.map(({ what }) => what).join("\n")).toMatch(/machines\/intents\//);
    // The state is encrypted, so the inputs of the pending operations are listed by name.
    const operations = pending.flatMap(({ text }) => operationsIn(text));
    expect(operations.filter((inputs) => inputs.includes("valueVersion"))).not.toEqual([]);
    expect(operations.flat().filter((input) => input.endsWith("Wo"))).toEqual([]);
    expect(leaks(everything(), readable)).toEqual([]);
    const calls = readFileSync(join(stack.dir, "grpc.json"), "utf8");
    if (binding === "pulumi-machines-plugin") {
      const answers = calls
        .trim()
        .split("\n")
        .filter((line) => line.includes('"/pulumirpc.ResourceProvider/'));
      expect(leaks({ visible: "plainly-visible" }, [{ what: "answers", text: answers.join("") }])).not.toEqual([]);
      expect(leaks(everything(), [{ what: "answers", text: answers.map(plainTextOf).join("\n") }])).toEqual([]);
    }
    // Proves that the search works: public values are found.
    const visible = leaks({ visible: "plainly-visible" }, readable).join("\n");
    for (const where of ["pulumi up", "pulumi preview --diff --json", "pulumi stack export", ".pulumi/history"])
      expect(visible).toContain(`visible in ${where}`);
  });

  test("secrets given to the service are not in its data either", async () => {
    const ofService = Object.entries(everything()).filter(([name]) =>
      /^(secret|appSecret|key|letter|agreement|token|password|private key)/.test(name),
    );
    const files = filesBelow(data);
    expect(files.map(({ what }) => what)).toContain("service.db");
    expect(leaks(Object.fromEntries(ofService), files)).toEqual([]);
  });
});
