// Every request names the resource or the function that it is sent for, in the header `pulumi-urn`.
import { afterEach, describe, expect, test } from "vitest";
import { CONTEXT } from "../../provider/core/resource.ts";
import { makeApp } from "../support/around.ts";
import { bindings } from "../support/binding.ts";
import { urnOf } from "../support/driver.ts";
import { callings } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

let service: TestService | undefined;
afterEach(() => service?.close());

/** What the requests since then name, without repetition. */
const named = ({ service: { audit } }: TestService, from: number) => [
  ...new Set(audit.after(from).map(({ urn }) => urn)),
];

/** What the program of the dynamic binding says about a resource. */
const contextFor = (type: string, name: string) => ({ name, owner: name, urn: urnOf(type, name) });

describe.each(bindings)("a resource, $name binding", ({ name: binding, start }) => {
  test("every verb names the resource", async () => {
    const started = (service = await startService());
    await makeApp(started, "shop");
    const { bound, close } = await start("Machine", started);
    try {
      const inputs = async (name: string, image: string) =>
        (await bound.check({}, { app: "shop", config: { image }, [CONTEXT]: contextFor("Machine", name) })).inputs;
      const before = await inputs("web é", "nginx:1");
      const after = { ...before, config: { image: "nginx:2" } };
      let at = started.service.audit.last;
      const next = () => {
        const found = named(started, at);
        at = started.service.audit.last;
        return found;
      };
      const own = [urnOf("Machine", "web é")];
      const { id, state } = await bound.create(before);
      expect(next()).toEqual(own);
      await bound.read(id, state);
      expect(next()).toEqual(own);
      const changed = await bound.update(id, state, after);
      expect(next()).toEqual(own);
      // A run that destroys declares nothing, and the dynamic binding knows the URN only from the program.
      await bound.nextRun();
      await bound.delete(id, changed);
      expect(next()).toEqual(binding === "plugin" ? own : [`machines:index:Machine::${id}`]);
    } finally {
      await close();
    }
  });

  test("two at once are not mixed up", async () => {
    const started = (service = await startService());
    await makeApp(started, "shop");
    const { bound, close } = await start("Machine", started);
    try {
      const names = ["one", "two", "three"];
      const inputs = await Promise.all(
        names.map(async (name) => {
          const given = { app: "shop", name, config: { image: "nginx" }, [CONTEXT]: contextFor("Machine", name) };
          return (await bound.check({}, given)).inputs;
        }),
      );
      const from = started.service.audit.last;
      await Promise.all(inputs.map((one) => bound.create(one)));
      const creates = started.service.audit.after(from).filter(({ operation }) => operation === "machines.create");
      expect(creates.map(({ urn }) => urn).sort()).toEqual(names.map((name) => urnOf("Machine", name)).sort());
    } finally {
      await close();
    }
  });

  test("no value of the resource is named, not even the name of a long one in full", async () => {
    const started = (service = await startService());
    await makeApp(started, "shop");
    const { bound, close } = await start("Secret", started);
    try {
      const name = `${"long-".repeat(200)}end`;
      const given = { app: "shop", name: "KEY", value: "canary-of-a-secret", [CONTEXT]: contextFor("Secret", name) };
      const { inputs } = await bound.check({}, given);
      await bound.create(inputs);
      const urns = started.service.audit.after(0).map(({ urn }) => urn ?? "");
      expect(urns.at(-1)).toMatch(/^….*long-end$/);
      expect(urns.join()).not.toContain("canary");
      for (const urn of urns) expect(Buffer.byteLength(urn)).toBeLessThanOrEqual(500);
    } finally {
      await close();
    }
  });
});

describe.each(callings)("a function, $name binding", ({ start }) => {
  test("the requests of a function name its token", async () => {
    const started = (service = await startService());
    await makeApp(started, "shop");
    const calling = await start(started);
    try {
      const from = started.service.audit.last;
      await calling.call("getMachines", { app: "shop" });
      expect(named(started, from)).toEqual(["machines:index:getMachines"]);
    } finally {
      await calling.close();
    }
  });
});
