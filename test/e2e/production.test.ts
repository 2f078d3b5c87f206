// docs/production.md, line by line, on an empty Debian: the commands are those of the page.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { debianServer } from "../../tools/setup/debianServer.mjs";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { image } from "../runtime/image.ts";
import { freePort } from "../support/freePort.ts";
import { version } from "../../service/version.ts";
import { commandsOf } from "../setup/page.ts";
import { Server } from "../setup/server.ts";
import { startActions, startIssuer } from "../support/issuer.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { asVersion } from "../support/otherBuild.ts";
import { findPebble, startAuthority, startDns } from "../support/pebble.ts";
import { startProvider } from "../support/provider.ts";
import { findRestic, startS3 } from "../support/restic.ts";
import { counts, Stack } from "../support/stack.ts";

/** The version of another package. */
const newer = "0.9.0";

const url = "https://machines.example.com";
const shop = "https://shop.apps.example.com";

const program = `import * as machines from "pulumi-machines";

const cluster = new machines.PostgresCluster("shop", { region: "ams", plan: "basic", deletionProtection: false });
const database = new machines.PostgresDatabase("shop", { cluster: cluster.id, name: "shop" });
const user = new machines.PostgresUser("shop", { cluster: cluster.id, username: "shop", role: "schema_admin" });
const app = new machines.App("shop", { name: "shop" });
const attachment = new machines.PostgresAttachment("shop", {
  ...{ cluster: cluster.id, app: app.id, secretName: "DATABASE_URL" },
  ...{ user: user.id, password: user.password, database: database.id },
});
const volume = new machines.Volume("files", { app: app.id, region: "ams", sizeGb: 1 });
const web = new machines.Machine("web", {
  app: app.id,
  region: "ams",
  minSecretsVersion: attachment.secretsVersion,
  config: {
    image: "${image}",
    mounts: [{ volume: volume.id, path: "/data" }],
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        ports: [
          { port: 80, handlers: ["http"], forceHttps: true },
          { port: 443, handlers: ["http", "tls"] },
        ],
      },
    ],
  },
});
new machines.MachineCommand("migration", {
  ...{ app: app.id, machine: web.id },
  create: ["sql", "CREATE TABLE notes (text text)"],
});
`;
/** Its resources, and the stack itself. */
const all = 9;

/** Everything beside the server: the authority of its certificates, its backups, the people's provider and the workflow's issuer. */
async function startWorld() {
  const { root, reason } = await debianServer(process.env);
  if (root === undefined) {
    leaveOut("the page for production on a server", reason);
    return undefined;
  }
  const [restic, pebble, s3] = [await findRestic(), await findPebble(), await startS3()];
  if (restic === undefined || !pebble || !s3) return undefined;
  const server = Server.create(root, restic);
  afterThisTest(async () => {
    await server.cutPower();
    server.remove();
  });
  const ports = { http: await freePort(), https: await freePort() };
  const authority = await startAuthority(pebble, { dns: await startDns(pebble), ...ports });
  const folder = mkdtempSync(join(tmpdir(), "machines-trust-"));
  afterThisTest(() => rmSync(folder, { recursive: true }));
  const trusted = join(folder, "authority.pem");
  const certificates = `${authority.trusted}\n${await authority.root()}`;
  writeFileSync(trusted, certificates);
  const provider = await startProvider(`${url}/console/signed-in`);
  provider.people["ada"] = { email: "ada@example.com", groups: ["platform"] };
  const issuer = await startIssuer(Date.now);
  const actions = await startActions(issuer, {
    ...{ sub: "repo:acme/shop:ref:refs/heads/main", repository: "acme/shop" },
    ...{ ref: "refs/heads/main", ref_type: "branch", actor: "ada" },
  });
  server.callIt("machines.example.com", "shop.apps.example.com", "any.apps.example.com");
  await server.boot();
  // It is there already, so setup leaves its configuration to the operator.
  await server.configureDocker();
  server.reach(80, ports.http);
  server.reach(443, ports.https);
  const addresses = [authority.directory, s3.url.slice("s3:".length), provider.url, issuer.url];
  for (const address of [...addresses, actions.env["ACTIONS_ID_TOKEN_REQUEST_URL"] ?? ""])
    server.lend(Number(new URL(address).port));
  return { server, authority, certificates, trusted, provider, issuer, actions, s3 };
}

type World = NonNullable<Awaited<ReturnType<typeof startWorld>>>;

/** Runs commands of the page as a person types them, and returns what each prints. */
async function type({ server }: World, commands: readonly string[]): Promise<string[]> {
  const printed: string[] = [];
  for (const command of commands) printed.push(await server.output("bash", "-c", command));
  return printed;
}

const setupOf = ({ authority }: World, command: string): string => `${command} --acme ${authority.directory}`;

async function install(world: World): Promise<void> {
  const { server, certificates } = world;
  const [install, setup = "", doctor = "", ...others] = commandsOf("Run it for a team");
  expect([install, others]).toEqual(["npm install --global machines-service", []]);
  server.installPackage();
  server.write("etc/ssl/authority.pem", certificates);
  await server.output("mkdir", "-p", "/etc/machines-service");
  server.write("etc/machines-service/service.env", "NODE_EXTRA_CA_CERTS=/etc/ssl/authority.pem\n");
  const [said] = await type(world, [setupOf(world, setup)]);
  expect(said).toContain("machines-service is ready at http://127.0.0.1:4280");
  await expect.poll(() => server.problems()).toEqual(["No backups are made, so a lost disk is the end of all data"]);
  await type(world, [doctor]);
  await server.loadImage();
}

/** Sends a request with curl from another computer. */
const curl = ({ server, trusted }: World, ...args: readonly string[]): Promise<string> =>
  server.beside("curl", ["--silent", "--show-error", "--cacert", trusted, ...args]);

async function reach(world: World): Promise<void> {
  expect(await curl(world, `${url}/healthz`)).not.toBe("");
  expect(await curl(world, "--header", "accept: text/html", `${url}/`)).toContain("<html");
  const redirected = await curl(world, "--write-out", "%{http_code} %{redirect_url}", "http://machines.example.com/");
  expect(redirected).toContain(`301 ${url}/`);
}

async function signIn(world: World): Promise<void> {
  const { server, provider, trusted } = world;
  server.write("etc/machines-service/oidc.secret", "of-the-client\n");
  const values = { "https://id.example.com": provider.url };
  const [secret, oidc = "", people = "", ...tokens] = commandsOf("Sign in", values);
  expect(secret).toContain("/etc/machines-service/oidc.secret");
  await type(world, [oidc, people]);
  const [first, , list] = await type(world, tokens.slice(0, 3));
  expect(first).toMatch(/^mcs_/);
  const id = /^(\w+) +Grace Hopper /m.exec(list ?? "")?.[1] ?? "";
  await type(world, [tokens.at(-1)?.replace("ID", id) ?? ""]);
  const env = { NODE_EXTRA_CA_CERTS: trusted };
  const session = await server.beside("node", ["test/setup/signIn.ts", url, "ada"], env);
  expect(JSON.parse(session)).toMatchObject({ role: "own", organization: "personal" });
}

async function deploy(world: World): Promise<Stack> {
  const { issuer, trusted, actions } = world;
  const [trust = "", config = ""] = commandsOf("Deploy from CI", { "--issuer github": `--issuer ${issuer.url}` });
  await type(world, [trust]);
  const stack = new Stack(inject("installed"), "production");
  Object.assign(stack.env, actions.env, { NODE_EXTRA_CA_CERTS: trusted });
  stack.program(program);
  await stack.ok("stack", "init", "dev");
  await stack.ok(...config.split(" ").slice(1));
  const up = await pulumi(world, stack, "up", "--yes", "--skip-preview");
  expect(counts(up)).toEqual({ created: all });
  await expectSame(world, stack);
  return stack;
}

/** Runs Pulumi on another computer, as a job of the workflow does. */
async function pulumi({ server }: World, stack: Stack, ...args: readonly string[]): Promise<string> {
  const { code, output } = await stack.run(args, { command: server.neighbour("pulumi") });
  expect(code, output).toBe(0);
  return output;
}

/** The App answers, and neither its program nor a refresh has anything to change. */
async function expectSame(world: World, stack: Stack): Promise<void> {
  await expect.poll(() => curl(world, `${shop}/release`).catch((error: unknown) => String(error))).toBe("1\n");
  // A program that was just started again counts as failed for three seconds.
  const seen = async () => counts(await pulumi(world, stack, "preview", "--refresh"));
  await expect.poll(seen).toEqual({ unchanged: all });
  const output = await pulumi(world, stack, "up", "--yes", "--skip-preview", "--refresh", "--diff");
  expect(counts(output), output).toEqual({ unchanged: all });
}

/** Runs a command in the Machine of the App. */
async function inMachine({ server }: World, ...command: readonly string[]): Promise<string> {
  const [{ id }] = (await server.call("GET", "/v1/apps/shop/machines")).body;
  const { status, body } = await server.call("POST", `/v1/apps/shop/machines/${id}/exec`, { command, stdin: "kept\n" });
  expect([status, body.exit_code], JSON.stringify(body)).toEqual([200, 0]);
  return body.stdout;
}

/** Writes a row and a file. */
async function write(world: World): Promise<void> {
  await inMachine(world, "sql", "INSERT INTO notes VALUES ('kept')");
  await inMachine(world, "write", "/data/note", "644");
}

/** Expects that row and that file. */
async function expectKept(world: World): Promise<void> {
  // A restored server replays its log first.
  await expect.poll(() => inMachine(world, "sql", "SELECT text FROM notes")).toBe("kept\n");
  expect(await inMachine(world, "cat", "/data/note")).toBe("kept\n");
}

/** The service, or the whole server, ends in the middle of its work. */
async function endAndStart(world: World, stack: Stack): Promise<void> {
  const { server } = world;
  await server.output("kill", "-KILL", await server.shown("MainPID"));
  await expect.poll(() => server.shown("NRestarts")).toBe("1");
  await expectSame(world, stack);
  await server.reboot();
  await expectSame(world, stack);
  await server.cutPower();
  await server.boot();
  await expectSame(world, stack);
  await expectKept(world);
}

const repository = "s3:https://s3.example.com/machines";

async function backUp(world: World): Promise<void> {
  const { server, s3 } = world;
  const { AWS_ACCESS_KEY_ID: key = "", AWS_SECRET_ACCESS_KEY: secret = "" } = s3.variables;
  await server.output(
    "bash",
    "-ec",
    commandsOf("Back up", { [repository]: s3.url, "KEY SECRET": `${key} ${secret}` }).join("\n"),
  );
  expect(await server.problems()).toEqual([]);
}

/** The disk is lost. Elsewhere, there are the backup and the folder with the settings. */
async function loseAndRestore(world: World, stack: Stack): Promise<void> {
  const { server, s3 } = world;
  await server.output("sh", "-c", "systemctl stop machines-service.service 'machines-service-*.socket'");
  const losses = [
    "pkill -KILL -x postgres; pkill -KILL -x pgbouncer",
    "rm -rf /var/lib/machines-service /etc/systemd/system/machines-service*",
  ];
  const containers = [
    "docker ps --all --quiet | xargs docker rm --force",
    "docker volume ls --quiet | xargs docker volume rm",
  ];
  await server.output("sh", "-c", [...losses, ...containers].join("; "));
  const [install, restore = "", setup = ""] = commandsOf("Restore", { [repository]: s3.url });
  expect(install).toBe("npm install --global machines-service");
  await type(world, [restore, setup]);
  await expectSame(world, stack);
  await expectKept(world);
  expect(await server.problems()).toEqual([]);
}

/** A newer version is installed while clients use the service. */
async function upgrade(world: World, stack: Stack): Promise<void> {
  const { server } = world;
  const [check, install, setup = ""] = commandsOf("Upgrade");
  expect([check, install]).toEqual([
    "npx machines-service@latest upgrade --check",
    "npm install --global machines-service@latest",
  ]);
  const running = () =>
    Promise.all([server.output("sh", "-c", "pgrep -x -o postgres"), server.output("docker", "ps", "--quiet")]);
  const before = await running();
  server.installPackage(asVersion(newer));
  expect(await server.output("machines-service", "upgrade", "--check")).toContain(newer);
  const load = `for i in $(seq 1 100); do curl -sf --cacert ${world.trusted} ${url}/healthz ${shop}/release > /dev/null || echo failed; done`;
  const [failed, said] = await Promise.all([server.beside("sh", ["-c", load]), server.output("bash", "-c", setup)]);
  expect([failed, said]).toEqual([
    "",
    expect.stringContaining(`restarts the service, which has version ${version}, with ${newer}`),
  ]);
  expect(await running()).toEqual(before);
  expect(await server.output("machines-service", "--version")).toBe(`machines-service ${newer}\n`);
  await expectSame(world, stack);
}

async function destroy(world: World, stack: Stack): Promise<void> {
  const entries = await world.server.output("machines-service", "history");
  expect(entries).toContain('"tokenName":"repo:acme/shop:ref:refs/heads/main by ada"');
  expect(readFileSync(join(stack.dir, "Pulumi.dev.yaml"), "utf8")).not.toContain("token");
  expect(counts(await pulumi(world, stack, "destroy", "--yes", "--skip-preview"))).toEqual({ deleted: all });
  expect(await world.server.output("docker", "ps", "--all", "--quiet")).toBe("");
  await expect.poll(() => world.server.run("pgrep", "-x", "postgres")).toMatchObject({ code: 1 });
}

test("the page for production, from an empty Debian to a restored and upgraded service", async ({ skip }) => {
  const world = await startWorld();
  if (!world) return skip();
  await install(world);
  await reach(world);
  await signIn(world);
  const stack = await deploy(world);
  await write(world);
  await endAndStart(world, stack);
  await backUp(world);
  await loseAndRestore(world, stack);
  await upgrade(world, stack);
  await destroy(world, stack);
});
