// Invariants after any fault: no duplicates, no losses, nothing left to do (I1 to I3).
import { expect } from "vitest";
import type { ResourceName } from "../../provider/registry.ts";
import { linesOf, onService } from "../faults/inventory.ts";
import { send } from "./around.ts";
import { counts, type Stack } from "./stack.ts";
import type { TestService } from "./startService.ts";

interface There {
  readonly id: string;
  readonly state: string;
}

const over: readonly string[] = ["destroyed", "destroying", "pending_destroy"];

/** Every Machine, also those of fleets. None has a lease. */
async function machinesOf(service: TestService): Promise<string[]> {
  const { apps } = await send<{ apps: { name: string }[] }>(service, "GET", "/v1/apps?org_slug=personal");
  const inApp = async ({ name }: { name: string }): Promise<string[]> => {
    const all = await send<There[]>(service, "GET", `/v1/apps/${name}/machines`);
    const machines = all.filter(({ state }) => !over.includes(state));
    for (const { id } of machines) {
      const lease = send(service, "GET", `/v1/apps/${name}/machines/${id}/lease`);
      await expect(lease, `a lease of Machine ${id} that was never released`).rejects.toThrow(/404/);
    }
    return machines.map(({ id }) => `one Machine ${name}/${id}`);
  };
  return (await Promise.all(apps.map(inApp))).flat();
}

/** All objects of a service, and each Machine of its fleets. */
const held = async (service: TestService): Promise<string[]> =>
  [...onService(service.service), ...(await machinesOf(service))].sort();

/** The same for the state of a stack. */
const managed = (stack: Stack): string[] =>
  Object.entries(stack.state())
    .flatMap(([name, { id, type: token, inputs, outputs: state }]) => {
      const type = token.slice(token.lastIndexOf(":") + 1) as ResourceName;
      const { machines } = state;
      const members = type === "Fleet" && Array.isArray(machines) ? (machines as There[]).map((one) => one.id) : [];
      return [
        ...linesOf({ type, name, id, inputs, state, needs: [], failed: [] }),
        ...(type === "Machine" ? [id] : members).map((one) => `one Machine ${one}`),
      ];
    })
    .sort();

/** Asserts that the service has exactly the objects in the state of a stack, and no lease. */
export async function expectNoDuplicates(service: TestService, stack: Stack): Promise<void> {
  expect(await held(service)).toEqual(managed(stack));
}

/** Ids and inputs in the state, by name; every run encrypts secrets again. */
const inputsOf = (stack: Stack): unknown => {
  const all = Object.entries(stack.state()).map(([name, { id, inputs }]) => [name, { id, inputs }] as const);
  const text = JSON.stringify(Object.fromEntries(all), (key, value: unknown) =>
    key === "ciphertext" ? "sealed" : value,
  );
  return JSON.parse(text);
};

/** Asserts that an `up` with a refresh changes nothing, in one run of the CLI; returns the number of resources. */
export async function expectUnchanged(stack: Stack): Promise<number> {
  const before = inputsOf(stack);
  const output = await stack.ok("up", "--yes", "--skip-preview", "--refresh");
  const { unchanged = 0, ...rest } = counts(output);
  expect(rest, output).toEqual({});
  expect(inputsOf(stack), "the state after a refresh").toEqual(before);
  return unchanged;
}

/**
 * After a fault: the service has exactly the objects in the state and no lease; a second `up` and a refresh change and
 * write nothing.
 */
export async function expectSettled(service: TestService, stack: Stack): Promise<void> {
  await expectNoDuplicates(service, stack);
  const before = service.service.audit.last;
  await expectUnchanged(stack);
  const writes = service.service.audit.after(before).filter(({ method }) => method !== "GET");
  expect(writes.map(({ operation }) => operation)).toEqual([]);
}

/** Destroys the stacks: nothing remains, and no request ever bypassed a lease. */
export async function expectEmptied(service: TestService, ...stacks: readonly Stack[]): Promise<void> {
  for (const stack of stacks) {
    await stack.destroy();
    expect(stack.state()).toEqual({});
  }
  expect(await held(service)).toEqual([]);
  const past = service.service.audit.after(0).filter(({ lease, status }) => lease === "other" && status === 200);
  expect(past, "a write past a lease").toEqual([]);
}
