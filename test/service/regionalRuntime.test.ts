// Runtimes of several regions as one (test/kubernetes/several.test.ts proves it on clusters).
import { expect, test } from "vitest";
import { RegionalRuntime } from "../../service/runtime/regionalRuntime.ts";
import type { Runtime, RuntimeHost, Subject, VolumeSubject } from "../../service/runtime/runtime.ts";

const volumeIn = (id: string, region: string): VolumeSubject => ({
  ...{ id, region, machine: null, source: null, isWritten: true, isSnapshot: false, network: "net", sizeGb: 1 },
});

/** Two runtimes, of `ams` and of `iad`, with a service that has one Machine and one volume in each region. */
function twoRegions() {
  const regions = { "m-ams": "ams", "m-iad": "iad" };
  const machines = new Map(
    Object.entries(regions).map(([id, region]) => [id, { id, region, appId: "app" } as Subject]),
  );
  const volumes = new Map<string, VolumeSubject>([
    ["v-ams", volumeIn("v-ams", "ams")],
    ["v-iad", volumeIn("v-iad", "iad")],
    ["s-iad", { ...volumeIn("s-iad", ""), isSnapshot: true, source: "v-iad" }],
  ]);
  const discarded: string[] = [];
  const host = {
    subject: (id: string) => machines.get(id),
    ids: () => [...machines.keys()],
    app: () => ({ name: "app", network: "net", machines: [...machines.keys()], certificates: [] }),
    volume: (id: string) => volumes.get(id),
    unsettledVolumes: () => ["v-ams", "v-iad", "s-iad", "deleted"],
    events: { discarded: (id: string) => discarded.push(id) },
    log: { warn: () => {} },
  } as unknown as RuntimeHost;
  const parts = new Map<
    string,
    { readonly host: RuntimeHost; readonly volumes: string[]; readonly started: string[] }
  >();
  const runtime = new RegionalRuntime(
    host,
    ["ams", "iad"].map((region) => ({
      regions: [region],
      runtime: (own: RuntimeHost): Runtime => {
        const part = { host: own, volumes: [] as string[], started: [] as string[] };
        parts.set(region, part);
        return {
          name: "kubernetes",
          reach: { endpoint: (id: string) => `${region}/${id}`, hasOtherWays: region === "iad" },
          volumeChanged: (id: string) => void part.volumes.push(id),
          start: ({ id }: Subject) => void part.started.push(id),
        } as unknown as Runtime;
      },
    })),
  );
  const of = (region: string) => {
    const part = parts.get(region);
    if (!part) throw new Error(`${region} has no runtime`);
    return part;
  };
  return { runtime, machines, volumes, discarded, ams: of("ams"), iad: of("iad") };
}

test("each runtime sees the Machines and the unwritten volumes of its own regions", () => {
  const { ams, iad } = twoRegions();
  expect([ams.host.ids(), iad.host.ids()]).toEqual([["m-ams"], ["m-iad"]]);
  expect(ams.host.subject("m-iad")).toBeUndefined();
  expect(iad.host.app("app")?.machines).toEqual(["m-iad"]);
  expect(ams.host.unsettledVolumes()).toEqual(["v-ams", "deleted"]);
  expect(iad.host.unsettledVolumes()).toEqual(["v-iad", "s-iad", "deleted"]);
});

test("a runtime knows the volumes of all regions, so that it removes none that is in use", () => {
  const { ams } = twoRegions();
  expect(ams.host.volume("v-iad")).toBeDefined();
});

test("a Machine and a volume get to the runtime of their region, a deleted volume to all", () => {
  const { runtime, machines, ams, iad } = twoRegions();
  for (const machine of machines.values()) runtime.start(machine);
  for (const id of ["v-ams", "v-iad", "s-iad", "deleted"]) runtime.volumeChanged(id);
  expect([ams.started, iad.started]).toEqual([["m-ams"], ["m-iad"]]);
  expect([ams.volumes, iad.volumes]).toEqual([
    ["v-ams", "deleted"],
    ["v-iad", "s-iad", "deleted"],
  ]);
});

test("a Machine is reached by the runtime of its region, and requests may also come by ways of one of them", () => {
  const { reach } = twoRegions().runtime;
  expect([reach.endpoint("m-ams", 80), reach.endpoint("m-iad", 80)]).toEqual(["ams/m-ams", "iad/m-iad"]);
  expect(reach.endpoint("m-gone", 80)).toBeUndefined();
  // Otherwise a Machine whose requests come by an Ingress would be stopped as idle.
  expect(reach.hasOtherWays).toBe(true);
});

test("a deleted volume is discarded only when nothing is left of it in any cluster", () => {
  const { discarded, ams, iad } = twoRegions();
  ams.host.events.discarded("deleted");
  ams.host.events.discarded("deleted");
  expect(discarded).toEqual([]);
  iad.host.events.discarded("deleted");
  expect(discarded).toEqual(["deleted"]);
});

test("a Machine of a region without a cluster has no room, and its requests are refused by name", () => {
  const { runtime, machines } = twoRegions();
  const lost = { ...machines.get("m-ams"), region: "sin" } as Subject;
  expect(runtime.hasRoom({ image: "nginx" }, "sin")).toBe(false);
  expect(() => runtime.processes(lost)).toThrow("unavailable: no cluster runs the Machines of region sin");
  expect(() => runtime.start(lost)).not.toThrow();
});
