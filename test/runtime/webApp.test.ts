// The example of a web App with the real CLI: its Machine is a container, and its certificate comes from a real ACME authority.
import { X509Certificate } from "node:crypto";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, test } from "vitest";
import { acmeIssuer } from "../../service/runtime/acme/index.ts";
import { secured, freePort } from "../service/reachable.ts";
import { currentCertificate } from "../support/certificates.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { findPebble, startAuthority, startDns } from "../support/pebble.ts";
import { counts } from "../support/stack.ts";
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

describe.runIf(hasEngine)("a web App with certificates", () => {
  test("its page opens with the issued certificate, a new image, and one of its own", async ({ skip }) => {
    const programs = await findPebble();
    if (!programs) return skip();
    const ports = { http: await freePort(), https: await freePort() };
    const dns = await startDns(programs);
    const authority = await startAuthority(programs, { dns, ...ports });
    setDefaultCACertificates([...getCACertificates("default"), authority.trusted]);
    const real = await startReal({ issuer: acmeIssuer(authority.directory), dns: dns.address, ports });
    afterThisTest(() => real.end());
    const stack = await exampleStack("web-app", real.service, { image, hostname, waitForCertificate: "true" });
    expect(counts(await stack.up())).toEqual({ created: 11 });

    const ca = await authority.root();
    const page = () => fetchFrom(ports.https, "/release", { host: hostname, ca });
    expect(await page()).toEqual({ status: 200, text: "1\n" });
    expect(await fetchFrom(ports.http, "/release", { host: hostname })).toMatchObject({ status: 301 });
    await expectUnchanged(stack);

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
    await expectUnchanged(stack);

    await stack.destroy();
    await expectNothingRuns(real.dataId);
  });
});
