// Sockets that a parent holds, as systemd does: while the service restarts, no request is lost.
import { once } from "node:events";
import { connect } from "node:net";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { noSockets, takeSockets } from "../../service/local/sockets.ts";
import { serviceMain } from "../support/built.ts";
import { canHoldSockets, holdSockets } from "../support/heldSockets.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { otherBuild } from "../support/otherBuild.ts";
import { steadyLoad } from "../support/steadyLoad.ts";
import { caller } from "./client.ts";
import { command, folder, foreground } from "./command.ts";

test("sockets are found by their names, and no child takes them as its own", () => {
  const given = { LISTEN_FDS: "3", LISTEN_PID: "7", LISTEN_FDNAMES: "https:http:https", PATH: "/bin" };
  const env: NodeJS.ProcessEnv = { ...given };
  expect(takeSockets(env, 7)).toEqual({ http: [4], https: [3, 5], api: [] });
  expect(env).toEqual({ PATH: "/bin" });
  const others: NodeJS.ProcessEnv = { ...given };
  expect(takeSockets(others, 8)).toEqual(noSockets);
  expect(others).toEqual({ PATH: "/bin" });
  expect(takeSockets({}, 7)).toEqual(noSockets);
  expect(() => takeSockets({ ...given, LISTEN_FDNAMES: "http:web:api" }, 7)).toThrow(
    'the name of socket 2 is "web", and must be http, https or api; set FileDescriptorName= in its unit',
  );
  expect(() => takeSockets({ LISTEN_FDS: "1", LISTEN_PID: "7" }, 7)).toThrow('the name of socket 1 is ""');
});

describe.runIf(canHoldSockets())("the API at a socket of its parent", () => {
  const args = (main: string, data: string): string[] => [main, "start", "--data", data, "--json", "--drain", "60"];

  test("no request is lost while the service restarts, also to another build of it", async () => {
    const data = folder();
    const { ports, start, said, end } = await holdSockets({ api: 0 });
    afterThisTest(end);
    // Another build in another folder, with the packages of this one.
    const other = otherBuild(serviceMain);
    afterThisTest(() => other.remove());
    const mains = [serviceMain, other.main];
    let running = await start(process.execPath, args(serviceMain, data));
    expect(await running.ready).toMatchObject({ url: `http://127.0.0.1:${ports.api}`, pid: running.pid });
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const { outcome, done } = steadyLoad({
      targets: [{ port: ports.api, host: "localhost", path: "/v1/platform/regions" }],
      ...{ requests: 2000, clients: 4, headers: { authorization: `Bearer ${token}` } },
      isRight: (status, text) => status === 200 && text.includes('"ams"'),
    });
    for (let round = 1; round <= 4; round++) {
      await expect.poll(() => outcome.answered + outcome.lost.length).toBeGreaterThan(round * 350);
      process.kill(running.pid, "SIGTERM");
      expect([await running.ended, said()]).toEqual([0, expect.any(String)]);
      running = await start(process.execPath, args(mains[round % 2] ?? "", data));
      expect(await running.ready).toMatchObject({ pid: running.pid });
    }
    const { answered, lost } = await done;
    expect([answered, lost]).toEqual([2000, []]);
  });

  test("a socket without a name of the service is refused", async () => {
    const { start, said, end } = await holdSockets({ wrong: 0 });
    afterThisTest(end);
    const { ended } = await start(process.execPath, args(serviceMain, folder()));
    expect(await ended).toBe(1);
    expect(said()).toContain('the name of socket 1 is "wrong", and must be http, https or api');
  });
});

test("a running request is answered before the end, and its connection is closed", async () => {
  const data = folder();
  const { url, token, pid, end } = await foreground(data, ["--drain", "60", "--delays", "none"]);
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { hostname, port } = new URL(url);
  // A request whose end has not been sent yet.
  const socket = connect(Number(port), hostname);
  afterThisTest(() => void socket.destroy());
  const body = JSON.stringify({ config: { image: "nginx" } });
  const head = [
    ...["POST /v1/apps/web/machines HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`],
    ...[`Content-Length: ${body.length}`, "", ""],
  ];
  socket.write(head.join("\r\n"));
  await call("GET", "/apps/web");
  process.kill(pid, "SIGTERM");
  // It accepts no more connections from then on.
  await expect
    .poll(() =>
      fetch(url).then(
        ({ status }) => status,
        () => "refused",
      ),
    )
    .toBe("refused");
  socket.write(body);
  let text = "";
  socket.on("data", (part: Buffer) => (text += part.toString()));
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text.toLowerCase()).toContain("\r\nconnection: close\r\n");
  expect((await end).code).toBe(0);
});

test("a second signal ends it at once", async () => {
  const { url, pid, end } = await foreground(folder(), ["--drain", "600"]);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\n");
  await once(socket, "connect");
  process.kill(pid, "SIGTERM");
  await expect
    .poll(() =>
      fetch(url).then(
        ({ status }) => status,
        () => "refused",
      ),
    )
    .toBe("refused");
  process.kill(pid, "SIGTERM");
  expect((await end).code).toBe(143);
});

test("the end of a service in the background may take as long as its drain", async () => {
  const data = folder();
  await command(["start", "--detach", "--data", data, "--listen", "127.0.0.1:0", "--drain", "10"]);
  expect(JSON.parse(readFileSync(join(data, "service.json"), "utf8"))).toMatchObject({ drainMs: 10_000 });
  expect((await command(["stop", "--data", data])).code).toBe(0);
});
