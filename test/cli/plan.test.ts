// What a promotion reads from a preview.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { costsOf, destructive, stepsOf, usesImage, type PreviewStep } from "../../cli/promotion/plan.ts";
import { unknownPolicies } from "../../cli/promotion/policyFiles.ts";
import { reasonOf, type Stack } from "../../cli/promotion/stacks.ts";

const step = (op: string, type: string, name: string, inputs: PreviewStep["after"] = {}): PreviewStep => ({
  op,
  type,
  name,
  before: inputs,
  after: inputs,
});

const event = (type: string, name: string, op = "update") => ({
  sequence: 1,
  timestamp: 1,
  resourcePreEvent: { metadata: { op, urn: `urn:pulumi:prod::shop::${type}::${name}`, type } as never },
});

test("steps have our types in either binding, and omit Pulumi's own", () => {
  const types = [
    "pulumi-nodejs:dynamic/machines:Machine",
    "machines:index:Volume",
    "pulumi:pulumi:Stack",
    "random:x:Y",
  ];
  expect(stepsOf(types.map((type) => event(type, "one"))).map(({ type }) => type)).toEqual([
    "Machine",
    "Volume",
    "random:x:Y",
  ]);
});

test("a fleet that is read before its update is one step", () => {
  const steps = ["refresh", "update"].map((op) => event("machines:index:Fleet", "web", op));
  expect(stepsOf(steps)).toMatchObject([{ op: "update", type: "Fleet", name: "web" }]);
});

test.each(["App", "Volume", "PostgresCluster", "PostgresDatabase"])(
  "deletion or replacement of a %s is refused",
  (type) => {
    for (const op of ["delete", "replace", "create-replacement", "delete-replaced", "discard", "import-replacement"])
      expect(destructive([step("update", "Machine", "web"), step(op, type, "data")])).toMatchObject([{ name: "data" }]);
    for (const op of ["same", "create", "update", "import", "read", "refresh"])
      expect(destructive([step(op, type, "data")])).toEqual([]);
  },
);

test("deletion of a fleet is refused if it deletes its volumes", () => {
  const inputs = { volume: { path: "/data" }, deleteVolumes: true };
  expect(destructive([step("delete", "Fleet", "web", inputs)])).toMatchObject([{ name: "web" }]);
  for (const kept of [{}, { volume: { path: "/data" } }, { deleteVolumes: true }])
    expect(destructive([step("delete", "Fleet", "web", kept)])).toEqual([]);
});

test("a replacement in several steps is reported once, and Machines may be replaced", () => {
  const steps = ["create-replacement", "replace", "delete-replaced"].flatMap((op) => [
    step(op, "Volume", "data"),
    step(op, "Machine", "web"),
  ]);
  expect(destructive(steps)).toMatchObject([{ type: "Volume", name: "data" }]);
});

test("an image counts as used if a Machine has it, and as possibly used if its inputs are secret", () => {
  const image = "registry.example.com/shop:1@sha256:aa";
  expect(usesImage([step("update", "Machine", "web", { config: { image } })], image)).toBe(true);
  expect(usesImage([step("update", "Machine", "web", { config: "[secret]" })], image)).toBe(true);
  expect(usesImage([step("update", "Machine", "web", { config: { image: `${image}b` } })], image)).toBe(false);
  expect(usesImage([step("update", "Volume", "data", { image })], image)).toBe(false);
});

test("costs are given before and after, and count a replacement once", () => {
  const volume = { sizeGb: 10 };
  const { before, after } = costsOf([step("same", "Volume", "a", volume)]);
  expect(before).toBeGreaterThan(0);
  expect(after).toBe(before);
  const replaced = ["create-replacement", "replace", "delete-replaced"].map((op) => step(op, "Volume", "a", volume));
  expect(costsOf(replaced)).toMatchObject({ before, after });
  expect(costsOf([step("create", "Volume", "a", volume)])).toMatchObject({ before: 0, after });
  expect(costsOf([step("delete", "Volume", "a", volume)])).toMatchObject({ before, after: 0 });
});

test.each([
  [
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock file with `pulumi cancel`.",
    "prod is locked by another run, or by one that was killed. When none is running, `pulumi cancel --stack prod` unlocks it.",
  ],
  [
    'error: parsing enforcement level for "images-pinned": "mandatroy" is not a valid enforcement level',
    '--policy-pack-config: parsing enforcement level for "images-pinned": "mandatroy" is not a valid enforcement level; the levels are advisory, mandatory, remediate and disabled',
  ],
])("a run that the engine did not begin is explained: %s", (says, reason) => {
  expect(reasonOf(new Error(`code: 255\nstderr: ${says}\n`), { name: "prod" } as Stack)).toBe(reason);
});

test("a policy that the pack does not know is named, where the engine only quotes the level that is left out", () => {
  const folder = mkdtempSync(join(tmpdir(), "machines-policies-"));
  const file = join(folder, "policy.json");
  const entries = { budget: { monthly: 1 }, "image-pinned": { exceptions: [] }, "own-one": {}, other: "mandatory" };
  try {
    writeFileSync(file, JSON.stringify(entries));
    const says = 'configuring policy pack "machines" at "packs": invalid enforcement level ""';
    expect(unknownPolicies(says, [join(folder, "none"), file])).toBe(
      `${file}: the pack does not know the policy "image-pinned"; did you mean "images-pinned"?\n` +
        `${file}: the pack does not know the policy "own-one"; its name may be misspelt`,
    );
    expect(unknownPolicies("something else", [file])).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
