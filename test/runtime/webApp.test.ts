// The example of a web App with the real CLI: its Machine is a container that uses a real Postgres server, and its certificate
// comes from a real ACME authority.
import { X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { acmeIssuer } from "../../service/runtime/acme/index.ts";
import { secured } from "../service/reachable.ts";
import { freePort } from "../support/freePort.ts";
import { currentCertificate } from "../support/certificates.ts";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { isThorough } from "../support/extent.mts";
import { expectUnchanged } from "../support/invariants.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { findPebble, startAuthority, startDns } from "../support/pebble.ts";
import type { TestService } from "../support/startService.ts";
import { counts } from "../support/stack.ts";
import { trust } from "../support/trust.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image, nextImage } from "./image.ts";
import { startReal } from "./real.ts";
import { fetchFrom } from "./requests.ts";
import { hasEngine } from "./runtimes.ts";

const hostname = "www.shop.example";

interface DnsRecord {
  readonly type: string;
  readonly name: string;
  readonly value: string;
}

interface Cluster {
  readonly status: string;
  readonly endpoints: { readonly primary: { readonly pooler: { readonly host: string; readonly port: number } } };
}

/** The connection URI of a new Postgres cluster. */
async function urlOfNewDatabase(service: TestService): Promise<string> {
  const wanted = { org_slug: "personal", region: "ams", plan: "basic" };
  const { id } = (await send<{ data: { id: string } }>(service, "POST", "/v1/postgres", wanted)).data;
  const path = `/v1/postgres/${id}`;
  const cluster = async () => (await send<{ data: Cluster }>(service, "GET", path)).data;
  await expect.poll(async () => (await cluster()).status).toBe("ready");
  const { host, port } = (await cluster()).endpoints.primary.pooler;
  const credentials = await send<{ data: { password: string } }>(service, "GET", `${path}/users/fly-user/credentials`);
  return `postgresql://fly-user:${encodeURIComponent(credentials.data.password)}@${host}:${port}/fly-db`;
}

describe.runIf(hasEngine)("a web App with certificates", () => {
  test("its page opens with the issued certificate, a new image, and one of its own", async ({ skip }) => {
    const programs = await findPebble();
    if (!programs) return skip();
    const ports = { http: await freePort(), https: await freePort() };
    const dns = await startDns(programs);
    const authority = await startAuthority(programs, { dns, ...ports });
    trust(authority.trusted);
    const real = await startReal({ issuer: acmeIssuer(authority.directory), dns: dns.address, ports, postgres: true });
    afterThisTest(() => real.end());
    const databaseUrl = await urlOfNewDatabase(real.service);
    const settings = { image, hostname, waitForCertificate: "true", databaseUrl };
    const stack = await exampleStack("web-app", real.service, settings);
    expect(counts(await stack.up())).toEqual({ created: 11 });

    const ca = await authority.root();
    const page = () => fetchFrom(ports.https, "/release", { host: hostname, ca });
    expect(await page()).toEqual({ status: 200, text: "1\n" });
    expect(await fetchFrom(ports.http, "/release", { host: hostname })).toMatchObject({ status: 301 });
    await expectUnchanged(stack);
    const machine = stack.state()["web"]?.id.split("/") ?? [];
    expect(await real.exec(machine[0] ?? "", machine[1] ?? "", ["sql", "SELECT session_user"])).toBe("fly-user\n");

    await stack.set({ image: nextImage });
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect(await page()).toEqual({ status: 200, text: "2\n" });

    // The program waits until the record that proves the ownership is there.
    const { dnsRecords } = JSON.parse(await stack.ok("stack", "output", "--json")) as { dnsRecords: DnsRecord[] };
    const { name = "", value = "" } = dnsRecords.find(({ type }) => type === "TXT") ?? {};
    await dns.set("set-txt", { host: `${name}.`, value });
    const own = currentCertificate({ hosts: [hostname] });
    await stack.set({ fullchain: own.fullchain, privateKey: own.private_key });
    expect(counts(await stack.up())).toMatchObject({ created: 1 });
    const served = await secured("127.0.0.1", ports.https, hostname);
    expect(served.getPeerX509Certificate()?.fingerprint256).toBe(new X509Certificate(own.fullchain).fingerprint256);
    if (isThorough) await expectUnchanged(stack);

    await stack.destroy();
    await expectNothingRuns(real.dataId);
  });
});
