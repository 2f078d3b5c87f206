// npm run record-upgrade: records the output of this version for program.ts, and a data folder of its service, so that later versions can
// prove that they read it. Started by tools/recordUpgrade.mjs.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { TestProject } from "vitest/node";
import { seededRandom } from "../../service/index.ts";
import setup from "../e2e/globalSetup.ts";
import { makeMachine, send } from "../support/around.ts";
import { Stack, type Binding } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import {
  callsIn,
  conversationText,
  elsewhere,
  folder,
  settled,
  stateText,
  withoutRepetitions,
  type Operation,
} from "./records.ts";
import { recordService } from "./recordService.ts";

const { version } = JSON.parse(readFileSync("sdk/nodejs/package.json", "utf8")) as { version: string };
const target = join(folder, version);
const program = readFileSync(join(folder, "program.ts"), "utf8");

/** Runs the CLI and records its calls to the plugin. */
type Run = (operation: string, ...args: readonly string[]) => Promise<{ code: number; output: string }>;

/** A stack of the program in a binding, on a service of its own; `work` is called with it. */
async function withStack<T>(
  installed: string,
  binding: Binding,
  work: (stack: Stack, service: TestService) => Promise<T>,
): Promise<T> {
  // Not strict: `extra` has fields that the service does not know.
  const service = await startService({ strict: false, random: seededRandom("upgrade") });
  try {
    const stack = new Stack(installed, "upgrade", binding);
    stack.checkTypes();
    stack.program(program);
    await stack.init({
      "machines:endpoint": service.url,
      "machines:token": service.token,
      "upgrade:failing": "true",
      "upgrade:places": "true",
    });
    return await work(stack, service);
  } finally {
    await service.close();
  }
}

/** Creates everything, with one failing Machine, and returns the state. */
async function firstState(stack: Stack, service: TestService, run: Run): Promise<string> {
  const { output } = await run("up", "--yes", "--skip-preview", "--continue-on-error");
  const failed = Object.entries(stack.state()).filter(([, { initErrors }]) => initErrors !== undefined);
  // The program counts as the second error.
  if (failed.map(([name]) => name).join() !== "failing" || !output.includes(" 2 errored"))
    throw new Error(`one Machine should have failed, and nothing else:\n${output}`);
  return settled(stateText(await stack.ok("stack", "export")), service);
}

/** The whole life of a stack, from the first preview to the destroy. */
async function life(stack: Stack, service: TestService): Promise<{ state: string; conversation: string }> {
  const operations: Operation[] = [];
  const logs = mkdtempSync(join(tmpdir(), "pulumi-machines-record-"));
  const run: Run = async (operation, ...args) => {
    const log = join(logs, `${operations.length}.json`);
    const ran = await stack.run([operation, ...args], { env: { PULUMI_DEBUG_GRPC: log } });
    operations.push({ operation, calls: callsIn(settled(readFileSync(log, "utf8"), service)) });
    return ran;
  };
  const ok: Run = async (...args) => {
    const ran = await run(...args);
    if (ran.code !== 0) throw new Error(`pulumi ${args.join(" ")} failed:\n${ran.output}`);
    return ran;
  };
  try {
    await ok("preview");
    const state = await firstState(stack, service, run);
    await ok("preview");
    await stack.set({ "upgrade:changed": "true", "upgrade:failing": "false" });
    await ok("preview");
    await ok("up", "--yes", "--skip-preview");
    await editOutside(service);
    await ok("refresh", "--yes", "--skip-preview");
    await ok("preview");
    await stack.ok("config", "set", "machines:endpoint", elsewhere(service.url));
    await ok("preview");
    await stack.ok("config", "set", "machines:endpoint", service.url);
    const brought = await makeMachine(service, "upgrade-shop", {
      name: "brought",
      region: "ams",
      config: {
        image: "registry.example.com/shop:1.0.0",
        env: { GREETING: "hello" },
        guest: { cpus: 2, memory_mb: 512 },
      },
    });
    const quietly = ["--yes", "--skip-preview", "--generate-code=false", "--protect=false"];
    await ok("import", "machines:index:Machine", "brought", `upgrade-shop/${brought}`, ...quietly);
    await ok("destroy", "--yes", "--skip-preview");
    return { state, conversation: conversationText(withoutRepetitions(operations)) };
  } finally {
    rmSync(logs, { recursive: true, force: true });
  }
}

/** Changes by another user to the stack's objects. */
async function editOutside(service: TestService): Promise<void> {
  const machines = await send<{ id: string; name: string; config: { env: object; metadata: object } }[]>(
    service,
    "GET",
    "/v1/apps/upgrade-shop/machines",
  );
  const web = machines.find(({ name }) => name === "web");
  if (!web) throw new Error("the Machine web is missing");
  const at = `/v1/apps/upgrade-shop/machines/${web.id}`;
  await send(service, "POST", `${at}/metadata/tier`, { value: "three" });
  await send(service, "POST", `${at}/metadata/theirs`, { value: "kept" });
  const config = { ...web.config, env: { ...web.config.env, GREETING: "edited" }, restart: undefined };
  await send(service, "POST", at, { config });
  const [volume] = await send<{ id: string; name: string }[]>(service, "GET", "/v1/apps/upgrade-shop/volumes");
  await send(service, "PUT", `/v1/apps/upgrade-shop/volumes/${volume?.id ?? ""}/extend`, { size_gb: 5 });
}

async function main(): Promise<void> {
  const { build, name } = parseArgs({ options: { build: { type: "string" }, name: { type: "string" } } }).values;
  if (build !== undefined && name !== undefined) return recordService(build, name);
  if (existsSync(target))
    throw new Error(
      `${target} exists already: the record of a published version never changes. Before it is published, remove the folder and record again.`,
    );
  let installed = "";
  const provide = (_: string, value: string): void => void (installed = value);
  console.log("Packing and installing the packages …");
  const remove = setup({ provide } as unknown as TestProject);
  try {
    console.log("Recording the dynamic binding …");
    const dynamic = await withStack(installed, "pulumi-machines", (stack, service) =>
      firstState(stack, service, (operation, ...args) => stack.run([operation, ...args])),
    );
    console.log("Recording the plugin …");
    const plugin = await withStack(installed, "pulumi-machines-plugin", life);
    mkdirSync(target);
    // Stored as text, so that no tool formats, checks or fixes it.
    writeFileSync(join(target, "program.txt"), program);
    writeFileSync(join(target, "state.dynamic.json"), dynamic);
    writeFileSync(join(target, "state.plugin.json"), plugin.state);
    writeFileSync(join(target, "grpc.json"), plugin.conversation);
    console.log("Recording the service …");
    await recordService(join(process.cwd(), "service/dist/service/main.js"), version);
    console.log(`Written to ${target}.`);
  } finally {
    await remove();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
