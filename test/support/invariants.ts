// What must hold after every fault, whatever it was: nothing twice, nothing lost, nothing left to do (I1 to I3).
import { expect } from "vitest";
import { send } from "./around.ts";
import { counts, type Stack } from "./stack.ts";
import type { TestService } from "./startService.ts";

interface There {
  readonly id: string;
  readonly state: string;
}

const appsOf = async (service: TestService): Promise<string[]> =>
  (await send<{ apps: { name: string }[] }>(service, "GET", "/v1/apps?org_slug=personal")).apps.map(({ name }) => name);

/** Ids, as programs know them, of all that a service holds of Apps, Machines and volumes. */
async function held(service: TestService): Promise<string[]> {
  const inside = async (app: string): Promise<string[]> => {
    const list = async (what: "machines" | "volumes", over: readonly string[]): Promise<string[]> =>
      (await send<There[]>(service, "GET", `/v1/apps/${app}/${what}`))
        .filter(({ state }) => !over.includes(state))
        .map(({ id }) => `${app}/${id}`);
    const machines = await list("machines", ["destroyed", "destroying"]);
    for (const id of machines) {
      const lease = send(service, "GET", `/v1/apps/${id.replace("/", "/machines/")}/lease`);
      await expect(lease, `a lease of Machine ${id} that nobody gave back`).rejects.toThrow(/404/);
    }
    return [app, ...machines, ...(await list("volumes", ["pending_destroy", "destroying", "destroyed"]))];
  };
  return (await Promise.all((await appsOf(service)).map(inside))).flat();
}

/** The same of what stacks have in their state. */
async function managed(stacks: readonly Stack[]): Promise<string[]> {
  const states = await Promise.all(stacks.map((stack) => stack.state()));
  return states.flatMap((state) =>
    Object.values(state).flatMap(({ id, type }) => (/:(App|Machine|Volume)$/.test(type) ? [id] : [])),
  );
}

/**
 * After a fault: the service holds just what the state says and no lease; a second `up` and a refresh change nothing, and
 * write nothing.
 */
export async function expectSettled(service: TestService, stack: Stack): Promise<void> {
  expect((await held(service)).sort()).toEqual((await managed([stack])).sort());
  const before = service.service.audit.last;
  expect(Object.keys(counts(await stack.up())), "a second up").toEqual(["unchanged"]);
  expect(Object.keys(counts(await stack.refresh())), "a refresh").toEqual(["unchanged"]);
  const writes = service.service.audit.after(before).filter(({ method }) => method !== "GET");
  expect(writes.map(({ operation }) => operation)).toEqual([]);
}

/** Destroys what stacks have made: nothing is left, and no request ever went past a lease. */
export async function expectEmptied(service: TestService, ...stacks: readonly Stack[]): Promise<void> {
  for (const stack of stacks) {
    await stack.destroy();
    expect(await stack.state()).toEqual({});
  }
  expect(await appsOf(service)).toEqual([]);
  const past = service.service.audit.after(0).filter(({ lease, status }) => lease === "other" && status === 200);
  expect(past, "a write past a lease").toEqual([]);
}
