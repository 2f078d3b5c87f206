// What `pulumi-machines migrate` does with a state whose next update would change something, with a fake CLI; test/e2e uses the real one.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { makeApp, makeMachine } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";
import { commandHere, type Ran } from "./command.ts";
import { exportOf, urnOf } from "./exports.ts";

/** Has its state in a file. The second preview has the plan `after.json`, and runs `meanwhile.sh` first. */
const cli = `#!/bin/sh
here=$(dirname "$0")
verb=$1
what=$2
while [ $# -gt 0 ]; do
  if [ "$1" = --save-plan ]; then plan=$2; fi
  shift
done
cd "$here"
case "$verb $what" in
version*) echo v3.259.0 ;;
"stack export") cat state.json ;;
"stack import")
  if [ -e locked ]; then echo "error: the stack is currently locked by 1 lock(s)" >&2; exit 255; fi
  cat > next.json
  mv next.json state.json ;;
preview*)
  if [ -e previewed ]; then
    . ./meanwhile.sh
    mv after.json plan.json
  fi
  touch previewed
  cat plan.json > "$plan" ;;
*) echo "{}" ;;
esac
`;

const fleet = urnOf("plugin", "Fleet", "web");
const provider = "urn:pulumi:dev::shop::pulumi:providers:machines::default_0_1_0::0a1b";
const config = { image: "registry.example.com/shop:1" };

let service: TestService;
let folder = "";
let before = "";
const at = (name: string): string => join(folder, name);
const state = (): string => readFileSync(at("state.json"), "utf8");
const plan = (resourcePlans: object): string => JSON.stringify({ resourcePlans });

beforeAll(async () => {
  service = await startService();
  await makeApp(service, "shop");
  const id = `shop/${await makeMachine(service, "shop", { name: "web-1", region: "ams", config })}`;
  before = exportOf("plugin", [
    { type: "App", name: "shop", id: "shop" },
    {
      ...{ type: "Machine", name: "web-1", id, inputs: { app: "shop", region: "ams", config } },
      outputs: { region: "ams", __context: { stack: "s1" } },
    },
  ]);
});
afterAll(() => service.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-migrate-"));
  writeFileSync(at("pulumi"), cli, { mode: 0o755 });
  writeFileSync(at("Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(at("state.json"), before);
  const inputs = { app: "shop", name: "web", regions: { ams: 1 }, config, minSecretsVersion: 2 };
  const goal = { type: "machines:index:Fleet", custom: true, provider };
  const leaves = { [urnOf("plugin", "Machine", "web-1")]: { steps: ["delete"] } };
  writeFileSync(
    at("plan.json"),
    plan({ ...leaves, [fleet]: { steps: ["create"], goal: { ...goal, inputDiff: { adds: inputs } }, state: {} } }),
  );
  const inputDiff = { adds: { minSecretsVersion: 2 } };
  writeFileSync(at("after.json"), plan({ [fleet]: { steps: ["update"], goal: { ...goal, inputDiff } } }));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the command. During its second preview, something else happens. */
function migrate(meanwhile: string): Promise<Ran> {
  writeFileSync(at("meanwhile.sh"), `${meanwhile}\n`);
  return commandHere(service, ["migrate", "--yes", "--stack", "dev"], {
    ...{ cwd: folder, env: { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` } },
  });
}
const differs = "Fleet web: the next update would update it, because the program has another minSecretsVersion.";
/** The file with the earlier state. */
function copy(): string {
  const [file = "", ...more] = readdirSync(folder).filter((name) => name.startsWith("dev-before-migration-"));
  expect(more).toEqual([]);
  expect(readFileSync(at(file), "utf8")).toBe(before);
  return file;
}

test("the state is restored", async () => {
  const { code, err } = await migrate("");
  expect([code, err]).toEqual([
    2,
    expect.stringContaining(`${differs}\nThe state is as before; ${copy()} has it, too.`),
  ]);
  expect(JSON.parse(state())).toEqual(JSON.parse(before));
});

test.each<[meanwhile: string, script: string, reason: string]>([
  [
    "another run has changed the state",
    `sed 's/"resources":\\[/&{"urn":"urn:pulumi:dev::shop::machines:index:App::blog","type":"machines:index:App"},/' state.json > other.json
mv other.json state.json`,
    "another run has changed the state since",
  ],
  ["the stack is locked", "touch locked", "`pulumi stack import` failed: the stack is currently locked by 1 lock(s)"],
])("the state keeps the migration, and the copy is named, when meanwhile %s", async (_, script, reason) => {
  const { code, err } = await migrate(`${script}\ncp state.json left.json`);
  const file = copy();
  expect([code, err]).toEqual([
    2,
    expect.stringContaining(`${differs}
The earlier state could not be restored, and the state may still have the migration: ${reason}
The earlier state is in ${file}. If no other run has changed the state since, this restores it: pulumi stack import --stack dev --file ${file}
Otherwise declare what there is before the next up`),
  ]);
  expect(state()).toBe(readFileSync(at("left.json"), "utf8"));
  expect(state()).toContain(fleet);
});
