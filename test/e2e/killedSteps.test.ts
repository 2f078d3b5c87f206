// kill -9 of a run at every one of its requests, before and after the request is applied (F18): the next up converges,
// without duplicates or losses. `npm run test:all` tries all of them, which takes an hour; `npm test` one of one story.
// test/faults/wholeRuns.test.ts kills those of a Machine in process.
import { afterEach, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { currentCertificate } from "../support/certificates.ts";
import { gate } from "../support/gate.ts";
import { entriesOf, entryOf, none, type EveryType } from "../support/everyType.ts";
import { expectEmptied, expectNoDuplicates, expectSettled } from "../support/invariants.ts";
import { family, kill, providersOf } from "../support/processes.ts";
import { bindings, counts, Stack, type Binding } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

/** Runs that are killed one after the other: their names, and their programs. */
interface Story {
  /** The program before the first of them. */
  readonly from: string;
  readonly stages: readonly (readonly [what: string, program: string])[];
  /** Settings of the provider, which only the plugin has. */
  readonly settings?: Readonly<Record<string, string>>;
}

const nothing = "export {};\n";
const head = `
import * as machines from "pulumi-machines";
const image = "registry.example.com/shop:1";
const app = new machines.App("shop", { name: "killed-shop" });
`;
const { fullchain, private_key: privateKey } = currentCertificate({ hosts: ["own.example.com"] });

/** One of every type that is created by an unrepeatable request. */
const kinds: EveryType<string> = {
  App: none("the head of each program has one"),
  Volume: 'const data = new machines.Volume("data", { app: app.id, region: "ams" });',
  VolumeSnapshot: 'new machines.VolumeSnapshot("snapshot", { app: app.id, volume: data.id });',
  IpAssignment: 'new machines.IpAssignment("address", { app: app.id, type: "v6" });',
  DeployToken: none("no operation revokes one"),
  Secret: 'new machines.Secret("secret", { app: app.id, name: "ONE", value: "hush-hush" });',
  AppSecrets: 'new machines.AppSecrets("secrets", { app: app.id, values: { TWO: "hush-hush" } });',
  SecretKey: 'new machines.SecretKey("key", { app: app.id, name: "KEY", type: "es256" });',
  Ciphertext: none("the service does not store it"),
  Signature: none("the service does not store it"),
  AcmeCertificate: 'new machines.AcmeCertificate("issued", { app: app.id, hostname: "www.example.com" });',
  CertificateValidation: none("it is a wait for an AcmeCertificate"),
  CustomCertificate: `new machines.CustomCertificate("own", ${JSON.stringify({ app: "killed-shop", hostname: "own.example.com", fullchain, privateKey })}, { dependsOn: app });`,
  Machine: 'const web = new machines.Machine("web", { app: app.id, config: { image } });',
  MachineMetadata: none("its requests can be repeated"),
  MachineCommand: none("the service does not store commands"),
  Fleet: none("it has a story of its own"),
  PostgresCluster:
    'const cluster = new machines.PostgresCluster("cluster", { region: "fra", plan: "basic", deletionProtection: false });',
  PostgresDatabase:
    'new machines.PostgresDatabase("database", { cluster: cluster.id, name: "shop", allowDataLoss: true });',
  PostgresUser: 'new machines.PostgresUser("user", { cluster: cluster.id, username: "shop", role: "writer" });',
  PostgresExtension: none("its requests can be repeated"),
  PostgresBackup: none("no operation deletes one"),
  PostgresAttachment: none("its requests can be repeated"),
};

const volume = `${head}${entryOf(kinds, "Volume") ?? ""}\n`;
const store = (name: string, greeting: string): string =>
  `${volume}new machines.Machine("store", { app: app.id, name: "${name}", region: "ams", config: { image, env: { GREETING: "${greeting}" }, mounts: [{ volume: data.id, path: "/data" }] } });\n`;

const fleet = (tag: string, strategy: string, regions: string): string => `${head}
new machines.Fleet("web", {
  app: app.id,
  regions: ${regions},
  config: { image: "registry.example.com/shop:${tag}" },
  strategy: { type: "${strategy}", ${strategy === "canary" ? 'observe: "0s"' : ""} },
});
`;

const rollouts: Story = {
  from: head,
  stages: [
    ["its create", fleet("1", "rolling", "{ ams: 2, fra: 1 }")],
    ["its rolling update", fleet("2", "rolling", "{ ams: 2, fra: 1 }")],
    ["its canaries", fleet("3", "canary", "{ ams: 2, fra: 1 }")],
    ["its move from blue to green", fleet("4", "bluegreen", "{ ams: 2, fra: 1 }")],
    ["its update at once, in other regions", fleet("5", "immediate", "{ fra: 2 }")],
    ["its deletion", head],
  ],
};

const oneMachine: Story = {
  from: volume,
  stages: [
    ["its create", store("one", "hello")],
    ["its update", store("one", "hi")],
    ["its replacement", store("two", "hi")],
    ["its deletion", volume],
  ],
};

const stories: Readonly<Record<string, Story>> = {
  "a fleet": rollouts,
  "a fleet whose Machines are resources": { ...rollouts, settings: { "machines:fleetViews": "true" } },
  "a Machine with a volume": oneMachine,
  "one of every kind": {
    from: nothing,
    stages: [
      [
        "their creates",
        `${head}${entriesOf(kinds)
          .map(([, text]) => text)
          .join("\n")}\n`,
      ],
      ["their deletions", nothing],
    ],
  },
};

/** The number of requests of the longest stage, and a few more. */
const longest = 60;
const moments = ["before", "after"] as const;
/** What is killed: all processes, or only our code, so that the engine continues without it. */
const victims = { everything: family, "the provider": providersOf } as const;
type Victim = keyof typeof victims;
const victimNames = Object.keys(victims) as Victim[];
const steps = Array.from({ length: longest }, (_, i) =>
  moments.flatMap((moment) => victimNames.map((victim) => ({ nth: i + 1, moment, victim }))),
).flat();

const cases = Object.entries(stories).flatMap(([story, details]) =>
  bindings
    .filter((binding) => details.settings === undefined || binding === "pulumi-machines-plugin")
    .map((binding) => ({ story, ...details, binding, steps })),
);

/** Asserts that the state has each Machine of a fleet as a resource, and no other. */
async function expectViews(service: TestService, stack: Stack): Promise<void> {
  const live = await send<{ name: string }[]>(service, "GET", "/v1/apps/killed-shop/machines");
  const seen = stack.resources().flatMap(({ urn, viewOf }) => (viewOf === undefined ? [] : [urn]));
  const names = seen.map((urn) => urn.slice(urn.lastIndexOf("/") + 1));
  expect(names.sort()).toEqual(live.map(({ name }) => name).sort());
}

describe.each(cases)("F18: kill -9 in the middle of $story on $binding", (one) => {
  const { from, stages, binding, steps: chosen, settings = {} } = one;
  const open: TestService[] = [];
  afterEach(() => Promise.all(open.splice(0).map((service) => service.close())));
  let isOver = false;

  async function begin(on: Binding): Promise<{ service: TestService; stack: Stack }> {
    const service = await startService();
    open.push(service);
    const stack = new Stack(inject("installed"), "steps", on);
    stack.program(from);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, ...settings });
    await stack.up();
    return { service, stack };
  }

  test.each(chosen)(
    "the next up completes a run after a kill of $victim $moment request $nth of each run is applied",
    async (step) => {
      // No stage has so many requests.
      if (isOver) return;
      const { service, stack } = await begin(binding);
      isOver = true;
      for (const [what, program] of stages) {
        stack.program(program);
        if (!(await killedAt(service, stack, step))) continue;
        isOver = false;
        await stack.ok("cancel", "--yes");
        // As if the lease of the killed run had expired.
        service.service.context.clock.advance(13_000);
        const { code, output } = await stack.run(["up", "--yes", "--skip-preview"]);
        expect(code, `${what}: ${output}`).toBe(0);
        await expectNoDuplicates(service, stack);
        if (settings["machines:fleetViews"]) await expectViews(service, stack);
        expect(Object.keys(counts(await stack.up())), what).toEqual(["unchanged"]);
      }
      await expectSettled(service, stack);
      await expectEmptied(service, stack);
    },
  );
});

/** Runs up, and kills it at a request; returns false when it ended before that request. */
async function killedAt(
  { service }: TestService,
  stack: Stack,
  { nth, moment, victim }: (typeof steps)[number],
): Promise<boolean> {
  const { faults } = service;
  const before = faults.met;
  const { opened, open } = gate();
  // Held until every process that waits for the answer is gone; a request that is not applied by then never is.
  const [fault = ""] = faults.add({
    nth,
    when: moment,
    until: () => opened,
    ...(moment === "before" ? { status: "reset" } : {}),
  });
  const { pid, ended } = stack.start(["up", "--yes", "--skip-preview", "--parallel", "1"]);
  let isEnded = false;
  void ended.then(() => (isEnded = true));
  await expect.poll(() => isEnded || faults.met > before, { interval: 5 }).toBe(true);
  const isMet = faults.met > before;
  if (isMet) kill(victims[victim](pid));
  const { code, output } = await ended;
  open();
  faults.remove(fault);
  if (!isMet) expect(code, output).toBe(0);
  return isMet;
}
