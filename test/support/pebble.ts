// Pebble, a real ACME authority, with its DNS server. It looks at hostnames at the ports of a test.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { pebbleProgram } from "../../tools/setup/pebble.mjs";
import { freePort } from "./freePort.ts";
import { currentCertificate } from "./certificates.ts";
import { afterThisTest } from "./leftovers.ts";

const host = "127.0.0.1";

interface Programs {
  readonly pebble: string;
  readonly dns: string;
}

/** The programs; undefined, said once, where they cannot be built. */
export async function findPebble(): Promise<Programs | undefined> {
  const found = await pebbleProgram("pebble", process.env);
  const dns = found.program === undefined ? found : await pebbleProgram("pebble-challtestsrv", process.env);
  if (found.program !== undefined && dns.program !== undefined) return { pebble: found.program, dns: dns.program };
  leaveOut("certificates from an ACME authority", found.reason ?? dns.reason ?? "no programs");
  return undefined;
}

/** The DNS of a test. */
export interface TestDns {
  /** Its address. */
  readonly address: string;
  /** Changes it, as in `set("add-a", { host: "www.example.com.", addresses: ["127.0.0.1"] })`. */
  set(what: string, body: object): Promise<void>;
}

/** Starts a DNS server, in which every name has the address 127.0.0.1 and no other record. */
export async function startDns({ dns }: Programs): Promise<TestDns> {
  const [port, management] = [await freePort(), await freePort()];
  const none = ["-http01", "-https01", "-tlsalpn01", "-doh"].flatMap((flag) => [flag, ""]);
  const flags = ["-dnsserver", `${host}:${port}`, "-management", `${host}:${management}`, "-defaultIPv6", ""];
  end(spawn(dns, [...flags, ...none], { stdio: "ignore" }));
  const set = async (what: string, body: object): Promise<void> => {
    const answer = await fetch(`http://${host}:${management}/${what}`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${what} gave ${answer.status} ${await answer.text()}`);
  };
  await expect
    .poll(() =>
      set("clear-a", { host: "nothing." }).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  return { address: `${host}:${port}`, set };
}

/** What an authority is to be like. */
export interface AuthorityOptions {
  readonly dns: TestDns;
  /** The ports at which it looks: those of the proxy. */
  readonly http: number;
  readonly https: number;
  /** Where it listens; a free port by default. */
  readonly port?: number;
  /** Whether it takes what it has seen for later certificates of the account, as public authorities do. */
  readonly remembers?: boolean;
}

/** An authority. */
export interface TestAuthority {
  readonly directory: string;
  readonly port: number;
  /** The certificate of its own HTTPS. */
  readonly trusted: string;
  readonly key: string;
  /** Its root certificate, in PEM. */
  root(): Promise<string>;
  stop(): Promise<void>;
}

/** The hostnames that an authority refuses. */
export const blocked = "blocked.example.com";

const own = currentCertificate({ hosts: ["localhost"], commonName: "Test Authority" });

/** Starts an authority. */
export async function startAuthority({ pebble }: Programs, options: AuthorityOptions): Promise<TestAuthority> {
  const folder = mkdtempSync(join(tmpdir(), "machines-pebble-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  const [port, management] = [options.port ?? (await freePort()), await freePort()];
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const config = {
    listenAddress: `${host}:${port}`,
    managementListenAddress: `${host}:${management}`,
    certificate: file("cert.pem", own.fullchain),
    privateKey: file("key.pem", own.private_key),
    httpPort: options.http,
    tlsPort: options.https,
    domainBlocklist: [blocked],
    retryAfter: { authz: 1, order: 1 },
    profiles: { default: { description: "usual", validityPeriod: 7_776_000 } },
  };
  const args = ["-config", file("config.json", JSON.stringify({ pebble: config })), "-dnsserver", options.dns.address];
  // It neither waits before it looks, nor refuses nonces at random.
  const reuse = options.remembers ? "100" : "0";
  const env = { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "5", PEBBLE_AUTHZREUSE: reuse };
  const child = spawn(pebble, args, { stdio: "ignore", env });
  end(child);
  const root = () => get(`https://localhost:${management}/roots/0`);
  await expect.poll(() => root().catch(() => "")).toContain("BEGIN CERTIFICATE");
  return {
    directory: `https://localhost:${port}/dir`,
    port,
    trusted: own.fullchain,
    key: own.private_key,
    root,
    async stop() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

function end(child: ChildProcess): void {
  afterThisTest(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
}

async function get(url: string): Promise<string> {
  const asked = request(url, { ca: own.fullchain }).end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  let text = "";
  for await (const part of response) text += String(part);
  return text;
}
