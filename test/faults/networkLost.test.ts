// Connections that end during a request (F01, F02, F19): the request takes effect exactly once, even if its answer is lost.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { startFaultProxy, type FaultProxy } from "../support/faultProxy.ts";
import { handled } from "../support/handled.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/a:1";

let service: TestService;
let proxy: FaultProxy;
let app = "";
let count = 0;

beforeAll(async () => (service = await startService()));
afterAll(() => service.close());
afterEach(() => proxy.close());

/** The handlers of a type, with the proxy in front of the service. */
async function through(type: string) {
  proxy = await startFaultProxy(service.url);
  app = await makeApp(service, `lost-${++count}`);
  return handled(type, { url: proxy.url, token: service.token }, { jump: true });
}
const machines = () =>
  send<{ id: string; state: string; config: { env?: Record<string, string> } }[]>(
    service,
    "GET",
    `/v1/apps/${app}/machines`,
  );
const sentTo = (path: RegExp) => proxy.arrived.filter((request) => path.test(request));
const creation = /^POST \/v1\/apps\/[^/]+\/machines$/;
const change = /^POST \/v1\/apps\/[^/]+\/machines\/[^/]+$/;
const deletion = /^DELETE \/v1\/apps\/[^/]+\/machines\/[^/?]+(\?.*)?$/;
const program = (env: Record<string, string> = {}, name = "web") => ({ app, name, config: { image, env } });

test.each([0, 1, 200])("F01 a create that was applied, its answer reset after %i bytes: one Machine", async (bytes) => {
  const type = await through("Machine");
  proxy.plan({ on: creation, do: { cutAnswer: bytes } });
  const { id } = await type.create(program());
  expect(proxy.met).toHaveLength(1);
  expect((await machines()).map((machine) => `${app}/${machine.id}`)).toEqual([id]);
  expect(sentTo(creation)).toHaveLength(1);
});

test("F01 several creates at once, every second one interrupted after it was applied: no additional Machine", async () => {
  const type = await through("Machine");
  for (const nth of [1, 3, 5]) proxy.plan({ on: creation, nth, do: { cutAnswer: 0 } });
  const made = await Promise.all(Array.from({ length: 6 }, (_, i) => type.create(program({}, `web-${i}`))));
  expect(proxy.met).toHaveLength(3);
  expect((await machines()).map(({ id }) => `${app}/${id}`).sort()).toEqual(made.map(({ id }) => id).sort());
});

test("F02 a create that was reset before it arrived: sent once more, one Machine", async () => {
  const type = await through("Machine");
  proxy.plan({ on: creation, do: { cutRequest: true } });
  const { id } = await type.create(program());
  expect((await machines()).map((machine) => `${app}/${machine.id}`)).toEqual([id]);
  expect(sentTo(creation)).toHaveLength(2);
});

test("F02 a kept-alive connection that has ended meanwhile: one Machine", async () => {
  const type = await through("Machine");
  await type.create(program({}, "first"));
  // The next request uses a connection that the other side resets when it arrives.
  proxy.plan({ on: creation, do: { cutRequest: true } });
  await type.create(program());
  expect(await machines()).toHaveLength(2);
});

test("F19 an update whose answer was lost: applied once", async () => {
  const type = await through("Machine");
  const made = await type.create(program());
  proxy.plan({ on: change, do: { cutAnswer: 0 } });
  const state = await type.update(made, program({ A: "2" }));
  expect(sentTo(change)).toHaveLength(1);
  expect((await machines()).map(({ config }) => config.env)).toEqual([{ A: "2" }]);
  expect(await type.read({ id: made.id, state })).toEqual(state);
});

test("F19 an update that never arrived is sent again", async () => {
  const type = await through("Machine");
  const made = await type.create(program());
  proxy.plan({ on: change, do: { cutRequest: true } });
  const state = await type.update(made, program({ A: "2" }));
  expect((await machines()).map(({ config }) => config.env)).toEqual([{ A: "2" }]);
  expect(await type.read({ id: made.id, state })).toEqual(state);
});

test.each([{ cutAnswer: 0 }, { cutRequest: true }] as const)(
  "F19 an interrupted deletion (%j): the Machine is gone",
  async (cut) => {
    const type = await through("Machine");
    const made = await type.create(program());
    proxy.plan({ on: deletion, do: cut });
    await type.delete(made);
    expect(proxy.met).toHaveLength(1);
    expect(await machines()).toEqual([]);
  },
);

test.each([{ cutAnswer: 0 }, { cutRequest: true }] as const)(
  "F19 an interrupted update and deletion of a volume are completed (%j)",
  async (cut) => {
    const type = await through("Volume");
    const volume = { app, region: "fra", name: "data", sizeGb: 1 };
    const made = await type.create(volume);
    proxy.plan({ on: /^PUT /, do: cut }, { on: /^PUT .*extend$/, nth: 2, do: cut }, { on: /^DELETE /, do: cut });
    const state = await type.update(made, { ...volume, sizeGb: 3, snapshotRetention: 7 });
    expect(state).toMatchObject({ currentSizeGb: 3, snapshotRetention: 7 });
    await type.delete({ id: made.id, state });
    expect(proxy.met.length).toBeGreaterThanOrEqual(2);
    expect(await type.read({ id: made.id, state })).toBeUndefined();
  },
);
