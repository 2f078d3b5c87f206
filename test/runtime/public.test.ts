// A service that other computers reach: its own names with certificates of an ACME authority, and no request lost while it restarts.
import { readFileSync, writeFileSync } from "node:fs";
import { request as sendHttp } from "node:http";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { serviceMain } from "../support/built.ts";
import { canHoldSockets, holdSockets } from "../support/heldSockets.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { otherBuild } from "../support/otherBuild.ts";
import { findPebble, startAuthority, startDns } from "../support/pebble.ts";
import { steadyLoad } from "../support/steadyLoad.ts";
import { caller } from "../service/client.ts";
import { command, folder, foreground } from "../service/command.ts";
import { get } from "../service/reachable.ts";
import { freePort } from "../support/freePort.ts";
import { removeOf } from "./cleaning.ts";
import { image } from "./image.ts";
import { docker, hasEngine } from "./runtimes.ts";

const hostname = "machines.example.com";
const appsDomain = "apps.example.com";
const web = `web.${appsDomain}`;

const services = [
  {
    protocol: "tcp",
    internal_port: 8080,
    ports: [
      { port: 80, handlers: ["http"] },
      { port: 443, handlers: ["tls", "http"] },
    ],
    checks: [{ type: "http", path: "/", interval: "1s" }],
  },
];

/** Removes the containers of a data folder after the test. */
function cleaned(data: string): string {
  afterThisTest(async () => removeOf(readFileSync(join(data, "data-id"), "utf8").trim()));
  return data;
}

/** Creates an App with a Machine that answers, and returns the id of the Machine. */
async function deploy(url: string, token: string, app = "web"): Promise<string> {
  const call = caller(url, token);
  await call("POST", "/apps", { name: app, org_slug: "personal" });
  const { body } = await call("POST", `/apps/${app}/machines`, { config: { image, services } });
  const state = async () => (await call("GET", `/apps/${app}/machines/${body.id}`)).body.state;
  await expect.poll(state).toBe("started");
  return body.id;
}

describe.runIf(hasEngine && canHoldSockets())("a service that other computers reach", () => {
  let programs: Awaited<ReturnType<typeof findPebble>>;
  beforeAll(async () => {
    programs = await findPebble();
  });
  beforeEach(({ skip }) => skip(programs === undefined));

  test("its names have certificates by ACME, and no request is lost while it restarts", async () => {
    if (!programs) return;
    const dns = await startDns(programs);
    const wanted = { http: await freePort(), https: await freePort(), api: 0 };
    const authority = await startAuthority(programs, { dns, http: wanted.http, https: wanted.https });
    const data = cleaned(folder());
    const roots = join(data, "../roots.pem");
    writeFileSync(roots, authority.trusted);
    const held = await holdSockets(wanted, { ...process.env, NODE_EXTRA_CA_CERTS: roots });
    afterThisTest(() => held.end());
    const { ports, start, said } = held;
    const names = ["--hostname", hostname, "--apps-domain", appsDomain, "--acme", authority.directory];
    const args = ["--data", data, "--json", "--runtime", "docker", "--dns", dns.address, "--drain", "60", ...names];
    let running = await start(process.execPath, [serviceMain, "start", ...args]);
    const publicUrl = `https://${hostname}:${ports.https}`;
    expect([await running.ready, said()]).toMatchObject([{ publicUrl, console: `${publicUrl}/` }, expect.any(String)]);
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const here = `http://127.0.0.1:${ports.api}`;
    const machine = await deploy(here, token);
    const ca = await authority.root();
    const secure = (host: string, path = "/") =>
      get(`https://127.0.0.1:${ports.https}${path}`, host, { servername: host, ca, rejectUnauthorized: true });
    await expect.poll(() => secure(web)).toMatchObject({ status: 200, text: `${machine} of web\n` });
    await expect.poll(() => secure(hostname)).toMatchObject({ status: 200 });
    expect(await get(`http://127.0.0.1:${ports.http}/docs`, hostname)).toMatchObject({
      status: 301,
      location: `${publicUrl}/docs`,
    });
    // Without an App, the certificate is one that clients refuse.
    expect((await secure(`other.${appsDomain}`)).status).not.toBe(200);
    const url = await command(["url", "web", "--data", data]);
    expect(url.out).toBe(`http://${web}:${ports.http}\nhttps://${web}:${ports.https}\n`);
    const orders = () => {
      const db = new DatabaseSync(join(data, "service.db"), { readOnly: true });
      const rows = db.prepare("SELECT name, added_at, issued_at FROM own_certificates ORDER BY name").all();
      db.close();
      return rows;
    };
    const ordered = orders();
    expect(ordered).toMatchObject([{ name: hostname }, { name: web }]);
    const containers = async () =>
      (await docker.listContainers()).filter(({ Image }) => Image === image).map(({ Id }) => Id);
    const before = await containers();

    const { outcome, done } = steadyLoad({
      targets: [
        { port: ports.http, host: web, path: "/" },
        { port: ports.https, host: web, path: "/", ca },
        { port: ports.https, host: hostname, path: "/v1/platform/regions", ca },
        { port: ports.api, host: "localhost", path: "/v1/platform/regions" },
      ],
      ...{ requests: 2000, clients: 3, headers: { authorization: `Bearer ${token}` } },
      isRight: (status, text) => status === 200 && (text === `${machine} of web\n` || text.includes('"ams"')),
    });
    const other = otherBuild(serviceMain);
    afterThisTest(() => other.remove());
    for (let round = 1; round <= 3; round++) {
      await expect.poll(() => outcome.answered + outcome.lost.length).toBeGreaterThan(round * 450);
      process.kill(running.pid, "SIGTERM");
      expect(await running.ended).toBe(0);
      running = await start(process.execPath, [round % 2 ? other.main : serviceMain, "start", ...args]);
      expect(await running.ready).toMatchObject({ pid: running.pid });
    }
    const { answered, lost } = await done;
    expect([answered, lost]).toEqual([2000, []]);
    expect(await containers()).toEqual(before);
    expect(orders()).toEqual(ordered);
  });
});

describe.runIf(hasEngine)("public addresses", () => {
  test("the proxy listens at exactly the wanted ports, and tells which program has them", async () => {
    const data = cleaned(folder());
    const [http, https] = [String(await freePort()), String(await freePort())];
    const args = ["--runtime", "docker", "--public", "0.0.0.0", "--http", http, "--https", https];
    const { url, token, pid } = await foreground(data, [...args, "--apps-domain", appsDomain]);
    const machine = await deploy(url, token);
    const outside = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .find(({ family, internal }) => family === "IPv4" && !internal)?.address;
    expect(await get(`http://127.0.0.1:${http}/`, "web.localhost")).toMatchObject({ text: `${machine} of web\n` });
    if (outside !== undefined) {
      expect(await get(`http://${outside}:${http}/`, web)).toMatchObject({ text: `${machine} of web\n` });
      // Other computers get only what has a name for them.
      expect(await get(`http://${outside}:${http}/`, "web.localhost")).toMatchObject({ status: 404 });
    }
    const second = cleaned(folder());
    const { code, err } = await command(["start", "--data", second, "--listen", "127.0.0.1:0", ...args]);
    expect(code).toBe(1);
    expect(err).toContain(`0.0.0.0:${http} is in use by `);
    if (process.platform === "linux") expect(err).toContain(`(pid ${pid}); stop that, or choose other ports`);
  });

  test("a long request and a stream of a Machine get their time at the end", async () => {
    const data = cleaned(folder());
    const args = ["--runtime", "docker", "--public", "127.0.0.1", "--http", "0", "--https", "0", "--drain", "60"];
    const { url, token, pid, end } = await foreground(data, args);
    await deploy(url, token);
    const { proxy } = JSON.parse(readFileSync(join(data, "service.json"), "utf8")) as { proxy: { http: number } };
    const asked = sendHttp({
      host: "127.0.0.1",
      port: proxy.http,
      path: "/slow/1000",
      headers: { host: "web.localhost" },
    });
    const answer = new Promise<string>((resolve, reject) => {
      asked.once("error", reject);
      asked.once("response", (response) => {
        let text = "";
        response.on("data", (part: Buffer) => {
          if (text === "") process.kill(pid, "SIGTERM");
          text += part.toString();
        });
        response.once("error", reject).once("end", () => resolve(text));
      });
    });
    asked.end();
    expect(await answer).toBe("begun\nended\n");
    expect((await end).code).toBe(0);
  });
});
