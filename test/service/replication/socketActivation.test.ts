// A member that has its port from its parent: while it restarts, no request is lost, also if it is the only one.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { serviceMain } from "../../support/built.ts";
import { canHoldSockets, holdSockets } from "../../support/heldSockets.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { steadyLoad } from "../../support/steadyLoad.ts";
import { folder } from "../command.ts";
import { serviceOn } from "./processes.ts";
import { serverForTests } from "./serverForTests.ts";

const server = serverForTests();

describe.runIf(canHoldSockets())("a member at a socket of its parent", () => {
  test("no request is lost while it restarts", async () => {
    const { options } = serviceOn(server.url);
    const data = folder();
    const { ports, start, end } = await holdSockets({ api: 0 });
    afterThisTest(end);
    const args = [serviceMain, "start", "--data", data, "--json", "--drain", "60", ...options];
    let running = await start(process.execPath, args);
    expect(await running.ready).toMatchObject({ pid: running.pid, url: `http://127.0.0.1:${ports.api}` });
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const { outcome, done } = steadyLoad({
      targets: [{ port: ports.api, host: "localhost", path: "/v1/platform/regions" }],
      ...{ requests: 600, clients: 2, headers: { authorization: `Bearer ${token}` } },
      isRight: (status, text) => status === 200 && text.includes('"ams"'),
    });
    for (let round = 1; round <= 2; round++) {
      await expect.poll(() => outcome.answered + outcome.lost.length).toBeGreaterThan(round * 150);
      process.kill(running.pid, "SIGTERM");
      expect(await running.ended).toBe(0);
      running = await start(process.execPath, args);
      expect(await running.ready).toMatchObject({ pid: running.pid });
    }
    const { answered, lost } = await done;
    expect([answered, lost]).toEqual([600, []]);
  });
});
