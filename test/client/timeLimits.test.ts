// A message has the time limit only where the limit ended the work, and then it has the cause as well.
import { createServer, type AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { retryWhilePreconditionFails } from "../../provider/client/poll.ts";
import { waitForMachine } from "../../provider/client/wait.ts";
import { makeApp, makeMachine } from "../support/around.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

let service: TestService;
beforeEach(async () => {
  service = await startService();
  await makeApp(service, "app");
});
afterEach(() => service.close());

const failure = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it succeeded",
    (error: unknown) => (error as Error).message,
  );

/** A client whose work may take a number of seconds. */
function limited(seconds: number, url = service.url) {
  const { api, clock } = jumpingClient({ url, token: service.token });
  return api.within({ at: clock.now() + seconds * 1000, allowed: `${seconds}s` });
}

describe("a service that does not answer", () => {
  let closed: string;
  beforeEach(async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closed = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await new Promise((resolve) => server.close(resolve));
  });

  test("a service that does not answer is the only cause when the attempts are used up", async () => {
    const text = await failure(limited(600, closed).apps.get({ appName: "app" }));
    expect(text).toMatch(/ECONNREFUSED.*Is the endpoint right, and does the service run\?$/);
    expect(text).not.toMatch(/600s|time limit|allowed/);
  });

  test("a service that does not answer is one cause and the time limit the other when the limit leaves no attempt", async () => {
    const text = await failure(limited(1, closed).apps.get({ appName: "app" }));
    expect(text).toMatch(
      /ECONNREFUSED[^.]*(?:\.\d[^.]*)*\. The time limit of 1s ended the attempts\. Is the endpoint right/,
    );
  });
});

describe("a service that fails", () => {
  const failing = () => service.fail({ operation: "apps.get", when: "before", status: 503, times: 1000 });

  test("a service that fails is the only cause when the attempts are used up", async () => {
    failing();
    const text = await failure(limited(600).apps.get({ appName: "app" }));
    expect(text).toMatch(/answered 503: .*The service failed; try again later\.$/);
    expect(text).not.toMatch(/600s|time limit/);
  });

  test("a service that fails is one cause and the time limit the other when the limit leaves no attempt", async () => {
    failing();
    const text = await failure(limited(1).apps.get({ appName: "app" }));
    expect(text).toMatch(
      /answered 503: .*The time limit of 1s ended the attempts\. The service failed; try again later\.$/,
    );
  });

  test("a service that fails is named when it kept a wait from its end", async () => {
    const id = await makeMachine(service, "app", { config: { image: "registry.example.com/web:1" } });
    service.fail({ operation: "machines.wait", when: "before", status: 503, times: 1000 });
    service.fail({ operation: "machines.get", when: "before", status: 503, times: 1000 });
    const key = { appName: "app", machineId: id };
    const text = await failure(waitForMachine(limited(60), key, ["suspended"], { progress: () => undefined }));
    expect(text).toMatch(/was not suspended within 60s\. machines\.wait answered 503: /);
  });
});

test("a refusal that is not repeated names no time limit, however little time is left", async () => {
  const text = await failure(limited(0.005).apps.get({ appName: "never-was" }));
  expect(text).toMatch(/answered 404: /);
  expect(text).not.toContain("time limit");
});

test("a refusal that lasts until the time limit names both", async () => {
  const id = await makeMachine(service, "app", { config: { image: "registry.example.com/web:1" } });
  service.fail({ operation: "machines.get", when: "before", status: 412, times: 1000 });
  const api = limited(30);
  const send = () => api.machines.get({ appName: "app", machineId: id });
  const text = await failure(retryWhilePreconditionFails({ api }, "the Machine", send));
  expect(text).toMatch(/answered 412: .* The time limit of 30s ended the wait\.$/);
});
