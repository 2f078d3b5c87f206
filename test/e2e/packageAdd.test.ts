// `pulumi package add` in each form that the docs name, with the real CLI: from an installed plugin, a server of files,
// an executable, a folder and a Git repository. The last two are started by the language host for Node.js, which some installations have too old.
import { execFile, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { send } from "../support/around.ts";
import { serveClone } from "../support/gitServer.ts";
import { elsewhere, findRuntime, nodejs, type Runtime } from "../support/runtimes.ts";
import { Stack } from "../support/stack.ts";
import { startService } from "../support/startService.ts";

const { version } = JSON.parse(readFileSync("sdk/nodejs/package.json", "utf8")) as { version: string };
const platform = `${process.platform}-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const archive = join(process.cwd(), `packages/pulumi-resource-machines-v${version}-${platform}.tar.gz`);

/** A project that names no plugin, and the plugin of the archive if wanted. */
async function project(name: string, runtime: Runtime, { installed = false } = {}): Promise<Stack> {
  const stack = new Stack(inject("installed"), name, "pulumi-machines", runtime);
  if (installed) await stack.ok("plugin", "install", "resource", "machines", version, "--file", archive);
  return stack;
}

const javaProgram = `package hello;

import com.pulumi.Pulumi;

public class App {
    public static void main(String[] args) {
        Pulumi.run(ctx -> ctx.export("app", new io.github.pulumimachines.machines.App("shop").name()));
    }
}
`;

/** Runs a program up and down. */
async function upAndDown(stack: Stack, program: string): Promise<void> {
  const service = await startService();
  stack.program(program);
  await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  await stack.up();
  expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 1 });
  await stack.destroy();
  expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  await service.close();
}

/** The packages that Pulumi's instructions name, in the place of the SDK from the clone. */
const ownDependencies = (pom: string): string => {
  const [dependencies = ""] =
    /^ {4}<dependency>.*<\/dependency>$/ms.exec(readFileSync("sdk/java/pom.xml", "utf8")) ?? [];
  return pom.replace(/^ {4}<!-- `mvn.*?<\/dependency>$/ms, () => dependencies);
};

/** Adds a package to a project in Java, and does what the instructions say. */
async function addToJava(stack: Stack, source: string): Promise<void> {
  writeFileSync(join(stack.dir, "pom.xml"), ownDependencies(elsewhere("quickstart-java", "pom.xml")));
  rmSync(join(stack.dir, "src"), { recursive: true });
  mkdirSync(join(stack.dir, "src/main/java/hello"), { recursive: true });
  const said = await stack.ok("package", "add", source);
  expect(said).toContain("cp -r sdks/machines/src/*");
  expect(readFileSync(join(stack.dir, "Pulumi.yaml"), "utf8")).toContain("packages:");
  cpSync(join(stack.dir, "sdks/machines/src"), join(stack.dir, "src"), { recursive: true });
}

/** Runs a program on the plugin in a folder, started with the command of a newer language host for Node.js. */
async function worksAsRun(folder: string): Promise<void> {
  const stack = new Stack(inject("installed"), "add-run", "pulumi-machines-plugin");
  const runner = join(folder, "node_modules/@pulumi/pulumi/cmd/run-plugin/index.js");
  const child = spawn("node", [runner, folder], {
    cwd: stack.dir,
    env: stack.env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const port = await new Promise<string>((resolve, reject) => {
      child.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim()));
      child.once("exit", (code) => reject(new Error(`the plugin has exited with ${code}`)));
    });
    stack.env["PULUMI_DEBUG_PROVIDERS"] = `machines:${port}`;
    await upAndDown(stack, 'import * as machines from "pulumi-machines";\nnew machines.App("shop");\n');
  } finally {
    child.kill();
  }
}

describe("pulumi package add", async () => {
  const java = await findRuntime("runtime: java", inject("installed"));
  const yaml = await findRuntime("runtime: yaml", inject("installed"));

  test.skipIf(java.runtime === undefined)(
    "pulumi package add adds an installed plugin to a project in Java",
    async () => {
      const stack = await project("add-installed", java.runtime as Runtime, { installed: true });
      await addToJava(stack, `machines@${version}`);
      await upAndDown(stack, javaProgram);
    },
  );

  test.skipIf(java.runtime === undefined)("pulumi package add adds an executable to a project in Java", async () => {
    const stack = await project("add-executable", java.runtime as Runtime);
    await addToJava(
      stack,
      join(inject("installed"), "node_modules/pulumi-machines-plugin/plugin/pulumi-resource-machines"),
    );
  });

  test.skipIf(yaml.runtime === undefined)(
    "pulumi package add is not needed in YAML: an installed plugin is enough",
    async () => {
      const stack = await project("add-yaml", yaml.runtime as Runtime, { installed: true });
      await upAndDown(stack, "resources:\n  shop:\n    type: machines:App\n");
    },
  );

  // The host for YAML fails after it has generated the SDK, and does not need it (docs/bindings.md#yaml).
  test.skipIf(yaml.runtime === undefined)(
    "pulumi package add downloads the plugin from a server of files",
    async () => {
      const requested: (string | undefined)[] = [];
      const server = createServer((request, response) => {
        requested.push(request.url);
        response.end(readFileSync(archive));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const stack = await project("add-server", yaml.runtime as Runtime);
        // It looks for the plugin on PATH first, where npm scripts have the clone's.
        const folders = (stack.env["PATH"] ?? "").split(delimiter);
        const path = folders.filter((folder) => !existsSync(join(folder, "pulumi-resource-machines"))).join(delimiter);
        Object.assign(stack.env, { PATH: path, PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "false" });
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const { output } = await stack.run(["package", "add", `machines@${version}`, "--server", url]);
        expect(requested, output).toEqual([`/${basename(archive)}`]);
        expect(output).toContain("Successfully generated an SDK for the machines package");
        await upAndDown(stack, "resources:\n  shop:\n    type: machines:App\n");
        expect(requested).toHaveLength(1);
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    },
  );

  test("pulumi package add generates SDKs for other languages, if their language hosts can", async () => {
    const stack = await project("add-others", nodejs, { installed: true });
    for (const language of ["nodejs", "python", "go"]) {
      const { code, output } = await stack.run([
        "package",
        "gen-sdk",
        "machines",
        "--language",
        language,
        "--out",
        "out",
      ]);
      if (/GeneratePackage/.test(output)) leaveOut(`package gen-sdk for ${language}`, "its language host is too old");
      else
        expect([code, readdirSync(join(stack.dir, "out", language)).length], output).toEqual([0, expect.any(Number)]);
    }
  });

  test("pulumi package add adds a folder, which Pulumi runs with the folder's packages", async () => {
    const stack = await project("add-folder", nodejs);
    const folder = join(stack.dir, "plugin");
    cpSync(join(inject("installed"), "node_modules/pulumi-machines-plugin/plugin"), folder, { recursive: true });
    const { output } = await stack.run(["package", "get-schema", folder]);
    expect(existsSync(join(folder, "node_modules/@pulumi/pulumi"))).toBe(true);
    if (output.includes("not supported"))
      leaveOut("plugins that Pulumi runs from a folder", "its host for Node.js is too old");
    else expect(output).toContain('"name": "machines"');
    await worksAsRun(folder);
  });

  test("pulumi package add adds a Git repository, whose installation builds the plugin", async () => {
    const server = await serveClone(process.cwd(), `v${version}`);
    const stack = await project("add-git", nodejs);
    // Elsewhere, because Pulumi also installs the plugins that npm packages above the folder name.
    const outside = mkdtempSync(join(tmpdir(), "pulumi-machines-add-"));
    const env = { ...stack.env, SSL_CERT_FILE: server.certificate };
    const args = ["package", "get-schema", `${server.url}@${version}`, "--non-interactive"];
    const output = await new Promise<string>((resolve) => {
      execFile("pulumi", args, { cwd: outside, env, maxBuffer: 2 ** 26 }, (_, out, err) => resolve(out + err));
    });
    rmSync(outside, { recursive: true });
    const plugins = join(stack.dir, ".pulumi-home/plugins");
    const [name = ""] = readdirSync(plugins).filter((entry) => entry.endsWith(`pulumi-machines.git-v${version}`));
    const folder = join(plugins, name);
    expect(existsSync(join(folder, "provider/dist/main.js")), output).toBe(true);
    if (output.includes("not supported"))
      leaveOut("plugins that Pulumi runs from Git", "its host for Node.js is too old");
    else expect(output).toContain('"name": "machines"');
    await worksAsRun(folder);
    await server.close();
  });
});
