// Whose certificates an issuer works on, while it has more requests than it works on at once.
import { expect, test } from "vitest";
import { IssueRefused, IssuerRequests } from "../../../service/runtime/issuerRequests.ts";
import type { IssuerHost } from "../../../service/runtime/certificateIssuer.ts";
import { currentCertificate } from "../../support/certificates.ts";
import { gate } from "../../support/gate.ts";
import { callerWith, withApp } from "../client.ts";

const host = "www.example.com";
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}.example.net`);

/** What an issuer with these requests works on, in order; each ends when the test says so. */
function working() {
  const asked: string[] = [];
  const open = new Map<string, () => void>();
  const requests = (issuerHost: IssuerHost) =>
    new IssuerRequests(issuerHost, async ({ hostname }, signal) => {
      asked.push(hostname);
      const { opened, open: end } = gate();
      open.set(hostname, end);
      signal.addEventListener("abort", end);
      await opened;
      open.delete(hostname);
      if (hostname === host) {
        const { fullchain: chain, private_key: key } = currentCertificate({ hosts: [hostname] });
        return { chain, key };
      }
      throw new IssueRefused({ code: "AUTHORITY_CHECK_FAILED", message: "no", remediation: "no", isFailedCheck: true });
    });
  return { asked, open, requests };
}

test("the hostnames of one organization leave room for those of another; earlier they waited for all of them", async () => {
  const { asked, open, requests } = working();
  const app = await withApp({
    issuer: (issuerHost) => {
      const all = requests(issuerHost);
      const request: IssuerRequests["request"] = (wanted) => all.request(wanted);
      return { name: "test", checksItself: true, request, close: () => all.close() };
    },
  });
  const red = callerWith(app, "token-of-red", { slug: "red" });
  await red("POST", "/apps", { name: "red", org_slug: "red" });
  await red("POST", "/apps", { name: "red-too", org_slug: "red" });
  for (const hostname of names("a", 4)) await red("POST", "/apps/red/certificates/acme", { hostname });
  for (const hostname of names("b", 4)) await red("POST", "/apps/red-too/certificates/acme", { hostname });
  // No request of red has an answer yet.
  await app.call("POST", "/apps/web/certificates/acme", { hostname: host });
  await expect.poll(() => asked).toContain(host);
  expect(asked.filter((name) => name !== host)).toEqual(names("a", 3));
  open.get(host)?.();
  await expect.poll(async () => (await app.call("GET", `/apps/web/certificates/${host}`)).body.status).toBe("active");
  // The others are worked on in their order.
  for (const name of [...names("a", 4), ...names("b", 4)]) {
    await expect.poll(() => open.has(name)).toBe(true);
    open.get(name)?.();
  }
});

test("organizations take turns, and a request that is repeated keeps its place", async () => {
  const { asked, open, requests } = working();
  const issuerHost = {
    settled: () => Promise.resolve(),
    log: { info() {}, warn() {}, error() {} },
    events: { issued() {}, refused() {} },
  } as unknown as IssuerHost;
  const all = requests(issuerHost);
  const ask = (owner: string, hostname: string) =>
    all.request({ subject: `${owner}/${hostname}`, hostname, owner, kept: undefined });
  for (const owner of ["red", "blue"]) for (const name of names(owner, 6)) ask(owner, name);
  ask("red", "red4.example.net");
  ask("green", "green0.example.net");
  const inOrder = [
    "red0",
    "red1",
    "red2",
    "blue0",
    "red3",
    "blue1",
    "green0",
    "red4",
    "blue2",
    "red5",
    "blue3",
    "blue4",
  ];
  const expected = [...inOrder, "blue5"].map((name) => `${name}.example.net`);
  for (const name of expected) {
    await expect.poll(() => open.has(name)).toBe(true);
    open.get(name)?.();
    await expect.poll(() => open.has(name)).toBe(false);
  }
  expect(asked).toEqual(expected);
});
