// Invariants after any fault: no duplicates, no losses, nothing left to do (I1 to I3).
import { expect } from "vitest";
import { keysOf } from "../../cli/stateIds.ts";
import { everyApp } from "../../provider/client/pages.ts";
import { newPass } from "../../provider/core/listing.ts";
import type { Resource } from "../../provider/core/resource.ts";
import { fleetOf, liveMachines } from "../../provider/machines/live.ts";
import { listPage } from "../../provider/plugin/list.ts";
import { resources, type ResourceName } from "../../provider/registry.ts";
import { jumpingClient } from "./jumpingClient.ts";
import { counts, type Stack } from "./stack.ts";
import type { TestService } from "./startService.ts";

/** Types with a list whose objects are not compared, and why. Every other type with a list is compared. */
const leftOut: Readonly<Partial<Record<ResourceName, string>>> = {
  Secret: "a state encrypts the names of those that AppSecrets set",
};

const compared = Object.values(resources).filter(({ name, list }) => list !== undefined && !(name in leftOut));

/** Types and ids of all objects of a service, and those of each Machine of a fleet. Asserts that no Machine has a lease. */
async function held(service: TestService): Promise<string[]> {
  const { api } = jumpingClient(service);
  const ofType = async (resource: Resource): Promise<string[]> =>
    (await listPage(resource, { query: {}, size: undefined, continuation: "" }, api)).items.flatMap(({ id }) =>
      linesOf(resource.name, id),
    );
  const inFleets = async (app: string): Promise<string[]> => {
    const machines = await liveMachines(newPass(api), app);
    for (const { id: machineId } of machines) {
      const lease = api.machines.getLease({ appName: app, machineId });
      await expect(lease, `a lease of Machine ${machineId} that was never released`).rejects.toThrow(/404/);
    }
    return machines.flatMap((one) => (fleetOf(one) === undefined ? [] : [`Machine of a fleet ${app}/${one.id}`]));
  };
  const apps = await everyApp(api, { orgSlug: api.config.organization });
  const lines = await Promise.all([...compared.map(ofType), ...apps.map(({ name }) => inFleets(name))]);
  return lines.flat().sort();
}

const linesOf = (type: string, id: string): string[] => keysOf(type, id).map((key) => `${type} ${key}`);

/** The same for the state of a stack. */
const managed = (stack: Stack): string[] =>
  Object.values(stack.state())
    .flatMap(({ id, type: token, outputs }) => {
      const type = token.slice(token.lastIndexOf(":") + 1);
      const { machines } = outputs ?? {};
      const members = type === "Fleet" && Array.isArray(machines) ? (machines as { readonly id: string }[]) : [];
      return [
        ...(compared.some(({ name }) => name === type) ? linesOf(type, id) : []),
        ...members.map((machine) => `Machine of a fleet ${machine.id}`),
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
