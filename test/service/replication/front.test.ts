// The server of a member: it passes requests to the leader, and answers them itself only once its service is complete.
import { once } from "node:events";
import { createServer, request as send, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { connectionLimits } from "../../../service/http/connections.ts";
import { Front } from "../../../service/http/front.ts";
import { MemberKey } from "../../../service/http/memberKey.ts";
import { forwardedFrom } from "../../../service/requestAddress.ts";
import { Networks } from "../../../service/runtime/networks.ts";
import { schemeOfClient } from "../../../service/runtime/trustedProxies.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { hang } from "../../support/patience.mts";

const key = new MemberKey(Buffer.alloc(32, 1));
const urlOf = (address: AddressInfo): string => `http://127.0.0.1:${address.port}`;

async function startFront(memberKey = key, patienceMs = hang, trusted?: Networks) {
  const limits = connectionLimits();
  const front = new Front({ limits, tls: undefined, key: memberKey, trusted, answerSelf: () => false, patienceMs });
  front.server.listen(0, "127.0.0.1");
  await once(front.server, "listening");
  afterThisTest(() => front.server.closeAllConnections());
  afterThisTest(() => void front.server.close());
  return { front, url: urlOf(front.server.address() as AddressInfo) };
}

/** A handler that keeps what it gets. */
function keeping() {
  const got: IncomingMessage[] = [];
  const handler: RequestListener = (request, response) => {
    got.push(request);
    request.resume();
    response.end("here");
  };
  return { got, handler };
}
const clientsOf = (requests: readonly IncomingMessage[]): unknown[] =>
  requests.map((request) => (request as { [forwardedFrom]?: string })[forwardedFrom]);

test("a request waits until the service is complete", async () => {
  const { front, url } = await startFront();
  const { got, handler } = keeping();
  front.attach(handler);
  const answer = fetch(url, { method: "POST", body: "text" });
  await once(front.server, "request");
  await new Promise(setImmediate);
  expect(got).toEqual([]);
  front.answer(url);
  expect(await (await answer).text()).toBe("here");
});

test("a body that takes longer than a request waits for a leader is passed to the leader", async () => {
  const leader = await startFront();
  leader.front.attach(keeping().handler);
  leader.front.answer(leader.url);
  const patience = 100;
  const standby = await startFront(key, patience);
  standby.front.follow(leader.url);
  const sent = send(standby.url, { method: "POST", headers: { "content-length": 8 } });
  const answered = once(sent, "response") as Promise<[IncomingMessage]>;
  sent.write("half");
  await once(standby.front.server, "request");
  const begun = performance.now();
  await expect.poll(() => performance.now() - begun).toBeGreaterThan(patience);
  sent.end("done");
  const [answer] = await answered;
  answer.resume();
  expect(answer.statusCode).toBe(200);
});

test("a request is passed to the leader, with its client, which only a member may name", async () => {
  const leader = await startFront();
  const { got, handler } = keeping();
  leader.front.attach(handler);
  leader.front.answer(leader.url);
  const standby = await startFront();
  standby.front.follow(leader.url);
  expect(await (await fetch(standby.url)).text()).toBe("here");
  await fetch(leader.url);
  await fetch(leader.url, { headers: { "machines-client": `10.0.0.1 ${"0".repeat(64)}` } });
  const stranger = await startFront(new MemberKey(Buffer.alloc(32, 2)));
  stranger.front.follow(leader.url);
  await fetch(stranger.url);
  expect(clientsOf(got)).toEqual(["127.0.0.1", undefined, undefined, undefined]);
  // A leader that hands over passes on what a standby has from a client, as its request.
  const between = await startFront();
  between.front.follow(leader.url);
  await fetch(between.url, { headers: { "machines-client": `10.0.0.9 ${key.sign("client", "10.0.0.9")}` } });
  expect(clientsOf(got).at(-1)).toBe("10.0.0.9");
});

test("the leader knows how a client of a standby came to its proxy, which only a member may say", async () => {
  const thisComputer = new Networks(["127.0.0.1/32"]);
  const leader = await startFront(key, hang, thisComputer);
  leader.front.attach((request, response) => void response.end(schemeOfClient(request)));
  leader.front.answer(leader.url);
  const standby = await startFront(key, hang, thisComputer);
  standby.front.follow(leader.url);
  const between = await startFront();
  between.front.follow(standby.url);
  const ask = async (url: string, headers: Record<string, string>) => (await fetch(url, { headers })).text();
  for (const scheme of ["https", "http"])
    for (const { url } of [leader, standby])
      expect(await ask(url, { "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": scheme })).toBe(scheme);
  const [client, other] = ["192.0.2.7", "192.0.2.8"];
  const named = { "machines-client": `${client} ${key.sign("client", client)}` };
  const saying = (who: string, by = key) => ({
    "machines-client-scheme": `https ${who} ${by.sign("scheme", `https ${who}`)}`,
  });
  for (const { url } of [leader, standby]) {
    expect(await ask(url, { ...named, ...saying(client) })).toBe("https");
    // Of a member of an older version.
    expect(await ask(url, named)).toBe("http");
    expect(await ask(url, { ...named, ...saying(other) })).toBe("http");
    expect(await ask(url, { ...named, ...saying(client, new MemberKey(Buffer.alloc(32, 2))) })).toBe("http");
    expect(await ask(url, saying("127.0.0.1"))).toBe("http");
  }
  // It trusts no proxy, so its clients came by HTTP, whatever they say.
  expect(await ask(between.url, { ...saying("127.0.0.1"), "x-forwarded-proto": "https" })).toBe("http");
});

test("a read is repeated at the next leader, and a change whose outcome is unknown has no answer", async () => {
  let asked = 0;
  const dying = createServer((request) => {
    asked++;
    request.socket.destroy();
  });
  dying.listen(0, "127.0.0.1");
  await once(dying, "listening");
  afterThisTest(() => void dying.close());
  const { front, url } = await startFront();
  front.follow(urlOf(dying.address() as AddressInfo));
  await expect(fetch(url, { method: "POST", body: "text" })).rejects.toThrow();
  expect(asked).toBe(1);
  const read = fetch(url);
  await expect.poll(() => asked).toBeGreaterThan(1);
  const { handler } = keeping();
  front.attach(handler);
  front.answer(url);
  expect(await (await read).text()).toBe("here");
});

test("while no member leads a request gets 503 when the member ends, and nothing was done for it", async () => {
  const { front, url } = await startFront();
  const answer = fetch(url, { method: "POST", body: "text" });
  await once(front.server, "request");
  void front.end();
  const { status, headers } = await answer;
  expect([status, headers.get("retry-after"), headers.get("machines-not-accepted")]).toEqual([503, "1", "1"]);
});
