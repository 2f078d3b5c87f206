// Fuzzes both sides of the proxy: hostile requests, and hostile answers. It never fails, no other App's Machine gets anything, and
// every connection gets an answer or is closed.
import { createServer, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isThorough } from "../support/extent.mts";
import { hostileAnswers, hostileRequests } from "./hostile.ts";
import { answering, bodyOf, converse, get, headEnd, listening, raw, statusesOf, withStandIns } from "./standIns.ts";

const together = 20;
const numRuns = (isThorough ? 10_000 : 200) / together;

const valuesOf = ({ rawHeaders }: IncomingMessage, name: string): string[] =>
  rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase().replaceAll("_", "-") === name);

/** What is wrong with a request that the proxy has sent to a Machine of the App `web`. */
function wrongs(request: IncomingMessage): string[] {
  const known = ["x-forwarded-for", "x-real-ip", "fly-client-ip"].filter(
    (name) => String(valuesOf(request, name)) !== "127.0.0.1",
  );
  const [host = "", ...more] = valuesOf(request, "host");
  const lengths = [...valuesOf(request, "content-length"), ...valuesOf(request, "transfer-encoding")];
  return [
    ...known.map((name) => `${name} is not what the proxy knows`),
    ...(/^(?:80\.)?web\.localhost\.?(?::\d{0,5})?$/i.test(host) && more.length === 0
      ? []
      : [`the hosts are ${host} ${String(more)}`]),
    ...(lengths.length > 1 ? [`the lengths are ${String(lengths)}`] : []),
    ...(valuesOf(request, "forwarded").length === 1 ? [] : ["forwarded is not what the proxy knows"]),
  ];
}

/** A Machine that reads strictly, and says what is wrong with what it gets. */
async function strictMachine() {
  const found: string[] = [];
  const counts = new Map<string, number>();
  const server = createServer((request, response) => {
    found.push(...wrongs(request));
    const run = String(request.headers["x-run"]);
    counts.set(run, (counts.get(run) ?? 0) + 1);
    request.resume().on("end", () => response.end("web\n"));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // A client that breaks off breaks off its request to the Machine.
    if (error.code?.startsWith("HPE_") && error.code !== "HPE_INVALID_EOF_STATE") found.push(error.code);
    socket.destroy();
  });
  return { port: await listening(server), found, counts };
}

/** A Machine of the App `other`, and what it got apart from proper requests. */
async function otherMachine() {
  const { port, seen } = await answering("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nother\n");
  return { port, strange: () => seen.filter((head) => !head.startsWith("GET /proper ")) };
}

test("F79: hostile requests reach no other App, are never read in two ways, and end", async () => {
  const app = await withStandIns();
  const [web, other] = [await strictMachine(), await otherMachine()];
  await app.machineAt(web.port);
  await app.machineAt(other.port, "other");
  let run = 0;
  const property = fc.asyncProperty(
    fc.array(hostileRequests, { minLength: together, maxLength: together }),
    async (requests) => {
      const asking = requests.map(async (pieces) => {
        const name = `r${run++}x`;
        const { text, isOurs } = await converse(
          app.ports.http,
          pieces.map((piece) => piece.replaceAll("RUN", name)),
        );
        expect(text).toMatch(/^(?:$|HTTP\/1\.1 \d{3} )/);
        // Each request that a Machine got has an answer here, unless this client ended the connection. One may be under way when the
        // bytes behind it turn out to be no HTTP, which closes the connection.
        if (!isOurs) expect(web.counts.get(name) ?? 0).toBeLessThanOrEqual(statusesOf(text).length + 1);
        web.counts.delete(name);
      });
      await Promise.all(asking);
      expect(web.found.splice(0)).toEqual([]);
      const isNamed = requests.some((pieces) => /(?:^|\n)host:[ \t]*other\.localhost/i.test(pieces.join("")));
      if (!isNamed) expect(other.strange()).toEqual([]);
      expect(bodyOf(await app.send(get("/proper", "", "other.localhost")))).toBe("other\n");
      expect(bodyOf(await app.send(get("/proper")))).toBe("web\n");
      expect(app.failures()).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns, seed: 79, endOnFailure: true });
});

/** Whether bytes are at most one answer of HTTP/1.1, perhaps without its end. */
function isOneAnswer(text: string): boolean {
  const end = text.indexOf(headEnd);
  if (end < 0) return text === "" || text.startsWith("HTTP/1.1 ");
  const [head, body] = [text.slice(0, end + 2), bodyOf(text)];
  if (!/^HTTP\/1\.1 \d{3} [^\r\n]*\r\n(?:[\w!#$%&'*+.^`|~-]+: ?[^\r\n\0]*\r\n)*$/.test(head)) return false;
  const length = /^content-length: (\d+)\r$/im.exec(head)?.[1];
  if (length !== undefined) return body.length <= Number(length);
  if (!/^transfer-encoding: chunked\r$/im.test(head)) return body === "";
  let rest = body;
  for (let chunk = /^([\da-f]+)\r\n/.exec(rest); chunk; chunk = /^([\da-f]+)\r\n/.exec(rest)) {
    const size = Number.parseInt(chunk[1] ?? "", 16);
    rest = rest.slice(chunk[0].length);
    if (size === 0) return rest === "" || rest.endsWith("\r\n");
    if (rest.length < size + 2) return true;
    rest = rest.slice(size + 2);
  }
  return rest === "" || /^[\da-f]+\r?$/.test(rest);
}

test("F77: hostile answers reach no other App, are never repeated elsewhere, and end", async () => {
  const app = await withStandIns();
  const plans = new Map<string, { readonly pieces: readonly string[]; readonly ending: string; asked: number }>();
  const leaving = new WeakSet<Socket>();
  const hostile = () =>
    raw((socket) =>
      socket.on("data", (data) => {
        // It ends, and nothing that it writes now would arrive.
        if (leaving.has(socket)) return;
        const plan = plans.get(/^GET \/(\d+) /.exec(data.toString("latin1"))?.[1] ?? "");
        if (!plan) return void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nweb\n");
        plan.asked++;
        if (plan.ending !== "stay") leaving.add(socket);
        for (const piece of plan.pieces) socket.write(piece, "latin1");
        if (plan.ending === "end") socket.end();
        if (plan.ending === "reset") socket.write("", () => setImmediate(() => socket.resetAndDestroy()));
      }),
    );
  await app.machineAt(await hostile());
  await app.machineAt(await hostile());
  const other = await otherMachine();
  await app.machineAt(other.port, "other");
  let run = 0;
  const property = fc.asyncProperty(
    fc.array(hostileAnswers, { minLength: together, maxLength: together }),
    async (answers) => {
      const asking = answers.map(async ({ pieces, ending }) => {
        const name = String(run++);
        const plan = { pieces, ending, asked: 0 };
        plans.set(name, plan);
        const { text } = await converse(app.ports.http, [get(`/${name}`)]);
        expect(text).toSatisfy(isOneAnswer);
        expect(text).not.toContain("undefined");
        // Another Machine may be asked only if nothing has arrived. A reset takes away what the proxy has not read yet.
        if (pieces.join("") !== "" && ending !== "reset")
          expect(plan.asked, `${JSON.stringify(plan)} ${text}`).toBeLessThanOrEqual(1);
        plans.delete(name);
      });
      await Promise.all(asking);
      expect(bodyOf(await app.send(get("/proper", "", "other.localhost")))).toBe("other\n");
      expect(other.strange()).toEqual([]);
      expect(app.failures()).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns, seed: 77, endOnFailure: true });
  expect(statusesOf(await app.send(get("/proper")))).toEqual([200]);
});
