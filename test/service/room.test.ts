// Whether a node has capacity, after any order of changes of Pods.
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Room } from "../../service/runtime/kubernetes/nodes.ts";

const nodes: readonly V1Node[] = ["a", "b"].map((name) => ({
  metadata: { name, labels: { "topology.kubernetes.io/region": "ams" } },
  status: { allocatable: { cpu: "2", memory: "4Gi", pods: "4" } },
}));

const pod = (node: string | undefined, milli: number, memoryMb: number, phase: string): V1Pod => ({
  spec: {
    ...(node === undefined ? {} : { nodeName: node }),
    containers: [{ name: "machine", resources: { requests: { cpu: `${milli}m`, memory: `${memoryMb}Mi` } } }],
  },
  status: { phase },
});

const change = fc.record({
  machine: fc.constantFrom("1", "2", "3", "4", "5"),
  pod: fc
    .tuple(
      fc.constantFrom("a", "b", undefined),
      fc.integer({ min: 1, max: 1500 }),
      fc.integer({ min: 1, max: 3000 }),
      fc.constantFrom("Pending", "Running", "Failed"),
    )
    .map((parts) => pod(...parts)),
  isGone: fc.boolean(),
});

const config = (cpus: number, memoryMb: number) => ({
  image: "app:1",
  guest: { cpu_kind: "performance" as const, cpus, memory_mb: memoryMb },
});

test("capacity depends on the last form of each Pod alone", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), fc.integer({ min: 256, max: 4096 }), (changes, memoryMb) => {
      const [after, fresh] = [new Room(), new Room()];
      for (const { machine, pod: one, isGone } of changes) after.seen(machine, one, isGone);
      const last = new Map(changes.map((one) => [one.machine, one]));
      for (const [machine, { pod: one, isGone }] of last) if (!isGone) fresh.seen(machine, one, false);
      for (const replaced of [undefined, "1"])
        expect(after.hasRoom(config(1, memoryMb), "ams", nodes, replaced)).toBe(
          fresh.hasRoom(config(1, memoryMb), "ams", nodes, replaced),
        );
    }),
  );
});

test("a node is full by CPUs, memory or Pods, and a Machine can take the place of the one that it replaces", () => {
  const has = (pods: readonly V1Pod[], replaced?: string): boolean => {
    const room = new Room();
    for (const [i, one] of pods.entries()) room.seen(`${i}`, one, false);
    return room.hasRoom(config(1, 2048), "ams", nodes.slice(0, 1), replaced);
  };
  expect(has([pod("a", 1000, 2048, "Running")])).toBe(true);
  for (const full of [
    [pod("a", 1001, 1, "Running")],
    [pod("a", 1, 2049, "Running")],
    Array.from({ length: 4 }, () => pod("a", 1, 1, "Running")),
  ]) {
    expect(has(full)).toBe(false);
    expect(has(full, "0")).toBe(true);
  }
  expect(has([pod("a", 2000, 4096, "Succeeded"), pod("b", 2000, 4096, "Running")])).toBe(true);
  expect(new Room().hasRoom(config(1, 2048), "iad", nodes)).toBe(false);
  expect(new Room().hasRoom(config(1, 2048), "iad", nodes, "", "iad")).toBe(true);
  expect(new Room().hasRoom(config(1, 2048), "ams", nodes, "", "iad")).toBe(false);
});
