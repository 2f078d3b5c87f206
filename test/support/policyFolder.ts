// Runs policy packs from their folder, for tests whose language host is too old for that.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stack } from "./stack.ts";

/** A language host that runs policy packs, as a current one for Node.js does, and nothing else. */
const host = (modules: string): string => `#!/usr/bin/env node
const { spawn } = require("node:child_process");
const grpc = require("${modules}/@grpc/grpc-js");
const { LanguageRuntimeService } = require("${modules}/@pulumi/pulumi/proto/language_grpc_pb");
const { RunPluginResponse } = require("${modules}/@pulumi/pulumi/proto/language_pb");
const { PluginInfo } = require("${modules}/@pulumi/pulumi/proto/plugin_pb");

const server = new grpc.Server();
server.addService(LanguageRuntimeService, {
  getPluginInfo: (_, answer) => answer(null, new PluginInfo().setVersion("1.0.0")),
  runPlugin(call) {
    const { request } = call;
    const folder = request.getInfo().getProgramDirectory();
    const env = Object.fromEntries(request.getEnvList().map((entry) => entry.split(/=(.*)/s).slice(0, 2)));
    const run = "${modules}/@pulumi/pulumi/cmd/run-policy-pack";
    const pack = spawn(process.execPath, [run, ...request.getArgsList(), folder], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const end = () => pack.kill();
    process.on("exit", end);
    call.on("cancelled", end);
    pack.stdout.on("data", (bytes) => call.write(new RunPluginResponse().setStdout(bytes)));
    pack.stderr.on("data", (bytes) => call.write(new RunPluginResponse().setStderr(bytes)));
    pack.on("close", (code) => {
      call.write(new RunPluginResponse().setExitcode(code ?? 1));
      call.end();
    });
  },
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit());
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
`;

/**
 * Makes the CLI run packs from their folder.
 * @returns the environment for it; the pack's runtime has to be `folder`, see {@link runFromFolder}
 */
export function packsFromFolders(stack: Stack, installed: string): Record<string, string> {
  const path = join(stack.dir, "path");
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "pulumi-language-folder"), host(join(installed, "node_modules")), { mode: 0o755 });
  return { PATH: `${path}:${stack.env["PATH"]}`, PULUMI_IGNORE_AMBIENT_PLUGINS: "false" };
}

/** Sets the runtime of a pack for {@link packsFromFolders}. */
export function runFromFolder(folder: string): void {
  const file = join(folder, "PulumiPolicy.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("runtime: nodejs", "runtime: folder"));
}
