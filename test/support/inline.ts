// Runs the program of a project through the Automation API, as a process of its own. Hooks of such a program work with every
// CLI: it needs no language host.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Ran, Stack } from "./stack.ts";

const driver = `
import { LocalWorkspace } from "@pulumi/pulumi/automation/index.js";
const { command, project, options } = JSON.parse(process.argv[2]);
const program = async () => ({ ...(await import("./index.ts")) });
const stack = await LocalWorkspace.selectStack(
  { stackName: "dev", projectName: project.name, program },
  { workDir: process.cwd(), projectSettings: project },
);
const onOutput = (text) => process.stdout.write(text);
await stack[command]({ onOutput, onError: onOutput, color: "never", ...options }).catch((error) => {
  process.stdout.write(error.message);
  process.exitCode = 1;
});
`;

/** Runs a command of the Automation API on the stack, which exists, with its program in the same process. */
export function runInline(
  stack: Stack,
  command: "preview" | "up" | "refresh" | "destroy",
  options: Readonly<Record<string, unknown>> = {},
): Promise<Ran> {
  writeFileSync(join(stack.dir, "inline.mjs"), driver);
  const path = "../node_modules/pulumi-machines-plugin/plugin";
  const plugins = { providers: [{ name: "machines", path }] };
  const project = {
    name: stack.name,
    runtime: "nodejs",
    main: stack.dir,
    ...(stack.binding === "pulumi-machines-plugin" ? { plugins } : {}),
  };
  return stack.run(["inline.mjs", JSON.stringify({ command, project, options })], { command: "node", plain: true });
}
