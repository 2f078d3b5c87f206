// Attacks on the proxy and the console, for attacks.ts. Their service has a proxy, and this process answers for its Machines.
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { Proxied } from "../../test/support/proxied.ts";
import { endProxied, startProxied } from "../../test/support/withProxied.ts";
import { descriptors, open, send, sockets } from "./attacking.ts";

/** An attack on a service that may open this many files. */
interface ProxyAttack {
  readonly files?: number;
  readonly act: (local: Proxied) => Promise<string>;
}

const host = "127.0.0.1";
const wanted = (name: string): string => `GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`;

/** Whether a visitor of the App gets an answer. */
async function visit({ ports, pid }: Proxied): Promise<string> {
  const status = await new Promise((resolve) => {
    const sent = request({ host, port: ports.http, agent: false, headers: { host: "web.localhost" } }, (answer) =>
      resolve(answer.resume().statusCode),
    );
    sent.once("error", ({ message }) => resolve(message)).end();
  });
  return `visitor: ${String(status)}, ${descriptors(pid)} descriptors`;
}

/** Sends requests with these names over ten connections. */
async function asked({ ports }: Proxied, count: number, name: (i: number) => string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 10 });
  const one = (i: number): Promise<unknown> =>
    new Promise((resolve) => {
      const sent = request({ host, port: ports.http, agent, headers: { host: name(i) } }, (answer) =>
        answer.resume().once("end", resolve),
      );
      sent.once("error", resolve).end();
    });
  for (let i = 0; i < count; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => one(i + j)));
  agent.destroy();
}

const handshake = (port: number, servername: string): Promise<void> =>
  new Promise((resolve) => {
    const socket = connectTls({ host, port, servername, rejectUnauthorized: false });
    socket.once("secureConnect", () => socket.destroy());
    socket.once("error", () => resolve()).once("close", () => resolve());
  });

async function handshakes({ ports }: Proxied, count: number, name: (i: number) => string): Promise<void> {
  for (let i = 0; i < count; i += 20)
    await Promise.all(Array.from({ length: 20 }, (_, j) => handshake(ports.https, name(i + j))));
}

const service = (port: object): string =>
  JSON.stringify({ config: { image: "nginx", services: [{ protocol: "tcp", internal_port: 8080, ports: [port] }] } });

/** By their names. */
export const proxyAttacks: Readonly<Record<string, ProxyAttack>> = {
  "proxy: nothing": { act: async (local) => sleep(1000, visit(local)) },
  "proxy: 2,500 half requests, 2,000 descriptors": {
    files: 2000,
    act: async (local) => {
      await open(`http://${host}:${local.ports.http}`, 2500, "GET / HTTP/1.1\r\nHost: local");
      const meanwhile = await visit(local);
      await sleep(15_000);
      return `${meanwhile}; 15 s later ${await visit(local)}`;
    },
  },
  "proxy: 2,500 connections without a handshake, 2,000 descriptors": {
    files: 2000,
    act: async (local) => {
      await open(`https://${host}:${local.ports.https}`, 2500, "");
      const meanwhile = await visit(local);
      await sleep(15_000);
      return `${meanwhile}; 15 s later ${await visit(local)}`;
    },
  },
  "proxy: 30,000 ports of 15 KB in the header Host": {
    act: async (local) => {
      await asked(local, 30_000, (i) => `80.web.localhost:${String(i).padStart(15_000, "1")}`);
      return visit(local);
    },
  },
  "proxy: 2,000 names in handshakes": {
    act: async (local) => {
      await handshakes(local, 2000, (i) => `${i}.web.localhost`);
      return visit(local);
    },
  },
  "proxy: 10,000 requests at once on a connection": {
    act: async (local) => {
      await open(`http://${host}:${local.ports.http}`, 1, wanted("slow.localhost").repeat(10_000));
      await sleep(3000);
      return visit(local);
    },
  },
  "proxy: a range of 10,000 public ports": {
    act: async (local) => {
      const { status } = await send(
        local,
        "POST",
        "/v1/apps/web/machines",
        service({ start_port: 20_000, end_port: 29_999 }),
      );
      await sleep(5000);
      return `${status}; ${await visit(local)}`;
    },
  },
  "console: 20,000 failed attempts to sign in": {
    act: async (local) => {
      for (let i = 0; i < 20_000; i += 20)
        await Promise.all(
          Array.from({ length: 20 }, (_, j) =>
            send(local, "POST", "/console/session", JSON.stringify({ token: `${i + j}`.padStart(15_000, "x") })),
          ),
        );
      return visit(local);
    },
  },
  "console: 20,000 cookies of 15 KB": {
    act: async (local) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 20 });
      const one = (i: number): Promise<unknown> =>
        new Promise((resolve) => {
          const cookie = `machines_console_${String(i).padStart(15_000, "0")}=a.b.c.d`;
          const sent = request(`${local.url}/console/session`, { agent, headers: { cookie } }, (answer) =>
            answer.resume().once("end", resolve),
          );
          sent.once("error", resolve).end();
        });
      for (let i = 0; i < 20_000; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => one(i + j)));
      agent.destroy();
      return visit(local);
    },
  },
  "console: 3,000 ways to ask for 10,000 requests of the log": {
    act: async (local) => {
      for (let i = 0; i < 10_000; i += 20)
        await Promise.all(
          Array.from({ length: 20 }, (_, j) => send(local, "GET", `/v1/apps/${String(i + j).padStart(180, "0")}`)),
        );
      for (let i = 0; i < 3000; i++) await send(local, "GET", `/console/api/requests?after=${i}`);
      return visit(local);
    },
  },
};

/** Attacks a service that has a proxy, from the folder of its sources. */
export async function withProxy(
  folder: string,
  files: number | undefined,
  attack: (local: Proxied) => Promise<void>,
): Promise<void> {
  const machine = createServer((incoming, response) => {
    // Those to the App `slow` are never answered.
    if (incoming.headers.host !== "slow.localhost") response.end("ok");
  });
  machine.listen(0, host);
  await once(machine, "listening");
  const running = await startProxied({
    folder,
    endpoints: { 8080: (machine.address() as AddressInfo).port },
    ...(files === undefined ? {} : { files }),
  });
  try {
    for (const name of ["web", "slow"]) {
      await send(running, "POST", "/v1/apps", JSON.stringify({ name, org_slug: "personal" }));
      for (const port of [
        { port: 80, handlers: ["http"] },
        { port: 443, handlers: ["http", "tls"] },
      ])
        await send(running, "POST", `/v1/apps/${name}/machines`, service(port));
    }
    await sleep(500);
    await attack(running);
  } finally {
    for (const socket of sockets.splice(0)) socket.destroy();
    await endProxied(running);
    machine.closeAllConnections();
    machine.close();
  }
}
