// Fleets through both bindings, against the real service.
import { expect } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import type { TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/web:1", metadata: { role: "web" } };

interface Live {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly config: Record<string, unknown>;
}

const machinesOf = (service: TestService, app: unknown): Promise<Live[]> =>
  send<Live[]>(service, "GET", `/v1/apps/${String(app)}/machines`);

const others = new WeakMap<TestService, Promise<string>>();
const anotherApp = (service: TestService): Promise<string> => {
  const known = others.get(service) ?? makeApp(service, "fleet-other");
  others.set(service, known);
  return known;
};

lifecycle("Fleet", {
  creates: 3,
  writeOnly: ["minSecretsVersion", "count", "spreadOver"],
  given: async (service) => ({
    app: await makeApp(service, "fleet-life"),
    name: "web",
    regions: { ams: 2, iad: 1 },
    config,
  }),
  changes: async (service) => [
    { set: { regions: { ams: 1, iad: 2 } }, expect: "update" },
    { set: { config: { ...config, image: "registry.example.com/web:2" } }, expect: "update" },
    { set: { config: { ...config, metadata: { role: "web", team: "a" } } }, expect: "update" },
    { set: { config: { ...config, metadata: {} } }, expect: "update" },
    { set: { minSecretsVersion: 0 }, expect: "update" },
    { set: { strategy: { type: "bluegreen" } }, expect: "no request" },
    {
      set: { config: { ...config, image: "registry.example.com/web:3" } },
      expect: "update",
      then: { rollout: "complete" },
    },
    { set: { onFailure: "rollback" }, expect: "no request" },
    { set: { progressDeadline: "5m" }, expect: "no request" },
    { set: { fallbackRegions: ["fra"] }, expect: "no request" },
    { set: { promoted: true }, expect: "no request" },
    { set: { regions: undefined, count: 3, spreadOver: ["ams", "fra"] }, expect: "update" },
    { set: { spreadOver: ["ams"] }, expect: "update" },
    { set: { name: "api" }, expect: "replace" },
    { set: { app: await anotherApp(service) }, expect: "replace" },
  ],
  steady: {
    spreadOver: "its regions show as drift",
    regions: "tested below",
    minSecretsVersion: "it cannot be read back",
  },
  drift: [
    {
      interfere: async (service, { app }) => {
        const [first] = await machinesOf(service, app);
        await send(service, "DELETE", `/v1/apps/${String(app)}/machines/${first?.id ?? ""}?force=true`);
      },
      shows: { count: 2 },
    },
    {
      interfere: async (service, { app }) => {
        const [first] = await machinesOf(service, app);
        const changed = { ...first?.config, image: "registry.example.com/other:1" };
        await send(service, "POST", `/v1/apps/${String(app)}/machines/${first?.id ?? ""}`, { config: changed });
      },
      shows: { config: expect.objectContaining({ image: "registry.example.com/other:1" }) as unknown },
    },
  ],
});
