// Invariants after any fault: no duplicates, no losses, nothing left to do (I1 to I3).
import { expect } from "vitest";
import { send } from "./around.ts";
import { counts, type Stack } from "./stack.ts";
import type { TestService } from "./startService.ts";

const appsOf = async (service: TestService): Promise<string[]> =>
  (await send<{ apps: { name: string }[] }>(service, "GET", "/v1/apps?org_slug=personal")).apps.map(({ name }) => name);

interface There {
  readonly id: string;
  readonly state: string;
}

const over: readonly string[] = ["destroyed", "destroying", "pending_destroy"];

/** Ids of the contents of an App, by kind, as programs see them. */
const inApp: Readonly<Record<string, (service: TestService, app: string) => Promise<string[]>>> = {
  async Machine(service, app) {
    const all = await send<There[]>(service, "GET", `/v1/apps/${app}/machines`);
    const machines = all.filter(({ state }) => !over.includes(state));
    for (const { id } of machines) {
      const lease = send(service, "GET", `/v1/apps/${app}/machines/${id}/lease`);
      await expect(lease, `a lease of Machine ${id} that was never released`).rejects.toThrow(/404/);
    }
    return machines.map(({ id }) => id);
  },
  async Volume(service, app) {
    const all = await send<There[]>(service, "GET", `/v1/apps/${app}/volumes`);
    return all.filter(({ state }) => !over.includes(state)).map(({ id }) => id);
  },
  async VolumeSnapshot(service, app) {
    const volumes = (await inApp["Volume"]?.(service, app)) ?? [];
    const of = async (volume: string) =>
      (await send<{ id: string }[]>(service, "GET", `/v1/apps/${app}/volumes/${volume}/snapshots`)).map(
        ({ id }) => `${volume}/${id}`,
      );
    return (await Promise.all(volumes.map(of))).flat();
  },
  IpAssignment: async (service, app) =>
    (await send<{ ips: { ip: string }[] }>(service, "GET", `/v1/apps/${app}/ip_assignments`)).ips.map(({ ip }) => ip),
  SecretKey: async (service, app) =>
    (await send<{ secret_keys: { name: string }[] }>(service, "GET", `/v1/apps/${app}/secretkeys`)).secret_keys.map(
      ({ name }) => name,
    ),
  Certificate: async (service, app) =>
    (
      await send<{ certificates: { hostname: string }[] }>(service, "GET", `/v1/apps/${app}/certificates`)
    ).certificates.map(({ hostname }) => hostname),
};

/** Kinds and ids of all objects of a service that must be created only once. */
async function held(service: TestService): Promise<string[]> {
  const inside = async (app: string): Promise<string[]> => {
    const kinds = Object.entries(inApp).map(async ([kind, list]) =>
      (await list(service, app)).map((id) => `${kind} ${app}/${id}`),
    );
    return [`App ${app}`, ...(await Promise.all(kinds)).flat()];
  };
  return [...(await Promise.all((await appsOf(service)).map(inside))).flat(), ...(await clustersOf(service))];
}

async function clustersOf(service: TestService): Promise<string[]> {
  const path = "/v1/postgres?org_slug=personal";
  const { data } = await send<{ data: { id: string; status: string }[] }>(service, "GET", path);
  return data.filter(({ status }) => status !== "deleted").map(({ id }) => `PostgresCluster ${id}`);
}

const compared = new RegExp(`:(?:Acme|Custom)?(App|PostgresCluster|${Object.keys(inApp).join("|")})$`);

/** The same for the state of a stack. */
const managed = (stack: Stack): string[] =>
  Object.values(stack.state()).flatMap(({ id, type, outputs }) => {
    const { machines } = outputs ?? {};
    if (type.endsWith(":Fleet") && Array.isArray(machines))
      return (machines as There[]).map((machine) => `Machine ${machine.id}`);
    const [, kind] = compared.exec(type) ?? [];
    return kind === undefined ? [] : [`${kind} ${id}`];
  });

/** Asserts that the service has exactly the objects in the state of a stack, and no lease. */
export async function expectNoDuplicates(service: TestService, stack: Stack): Promise<void> {
  expect((await held(service)).sort()).toEqual(managed(stack).sort());
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
