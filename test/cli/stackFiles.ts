// A Pulumi CLI that answers from files, so that the command runs without the real one; that is in test/e2e.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { backendId, stateIdIn } from "../../provider/core/backend.ts";
import type { TestService } from "../support/startService.ts";
import { command, commandHere, type Ran, type ReportJson } from "./command.ts";
import { exportOf, type Exported } from "./exports.ts";

/**
 * Stack `dev` is selected; `PULUMI_OPTION_STACK` names another one, as for the real CLI. Its export is `dev.json`, and from the second time on `later.json` where there is one. Before each of
 * its exports, `hook.mjs` runs, where there is one. The files of a stack of another project have `-` where its name has `/`.
 */
const cli = `#!/bin/sh
cd "$(dirname "$0")"
verb=$1
what=$2
stack=\${PULUMI_OPTION_STACK:-dev}
while [ $# -gt 0 ]; do
  if [ "$1" = --stack ]; then stack=$(echo "$2" | tr / -); fi
  shift
done
answer() { if [ -e "$1" ]; then cat "$1"; else echo "{}"; fi; }
if [ "$verb" = config ]; then answer "config-$stack.json"
elif [ "$what" = ls ]; then answer stacks.json
elif [ -e "refuses-$stack" ]; then
  echo "error: could not decrypt $stack" >&2
  exit 255
else
  if [ "$stack" = dev ]; then
    if [ -e hook.mjs ]; then node hook.mjs >&2; fi
    if [ -e asked ] && [ -e later.json ]; then stack=later; fi
    echo x >> asked
  fi
  answer "$stack.json"
fi
`;

const stateOf = (id: string, url: string): string => stateIdIn(id, backendId({ PULUMI_BACKEND_URL: url }));
const backend = "https://states.example.com";

/** Ids of states: of `dev`, of another one in the same backend, and of `dev` before it was copied from another backend. */
export const stateIds = {
  ours: stateOf("0123456789ab", backend),
  theirs: stateOf("ba9876543210", backend),
  copied: stateOf("0123456789ab", "https://other.example.com"),
};

/** A resource in the state with an id. */
export const marked = (resource: Exported, stack = stateIds.ours): Exported => ({
  ...resource,
  outputs: { __context: { stack } },
});

/** The export of a stack with resources, in another project if one is given. */
export const inStack = (stack: string, resources: readonly Exported[], project = "shop"): string =>
  exportOf("plugin", resources).replaceAll("urn:pulumi:dev::shop::", `urn:pulumi:${stack}::${project}::`);

/** The files, in a folder of their own. */
export class StackFiles {
  readonly folder = mkdtempSync(join(tmpdir(), "machines-stacks-"));
  readonly #service: TestService;

  constructor(service: TestService, ...others: readonly string[]) {
    this.#service = service;
    this.write("pulumi", cli);
    chmodSync(join(this.folder, "pulumi"), 0o755);
    this.stacks(...others);
    this.write("dev.json", exportOf("plugin", []));
    for (const name of others) this.write(`${name.replaceAll("/", "-")}.json`, inStack(name, []));
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name));
  }

  /** Sets the stacks beside `dev`. */
  stacks(...others: readonly string[]): void {
    const all = ["dev", ...others].map((name) => ({ name, current: name === "dev" }));
    this.write("stacks.json", JSON.stringify(all));
  }

  /**
   * Runs a module before each export of `dev`, with the function `send(method, path, body)`, which returns the body of the answer.
   */
  hook(module: string): void {
    const { url, token } = this.#service;
    this.write(
      "hook.mjs",
      `import { existsSync, renameSync, writeFileSync } from "node:fs";
const headers = { authorization: ${JSON.stringify(`Bearer ${token}`)}, "content-type": "application/json" };
async function send(method, path, body) {
  const answer = await fetch(${JSON.stringify(url)} + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(method + " " + path + ": " + answer.status + " " + text);
  return text === "" ? undefined : JSON.parse(text);
}
${module}
`,
    );
  }

  get env(): Record<string, string> {
    const { folder } = this;
    return {
      PULUMI_BACKEND_URL: backend,
      PULUMI_HOME: folder,
      PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}`,
    };
  }

  /** Runs `pulumi-machines orphans` in this process. */
  orphans(...args: readonly string[]): Promise<Ran> {
    return this.run(["orphans", ...args]);
  }

  /** Runs any command in this process. */
  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    return commandHere(this.#service, args, { cwd: this.folder, env: { ...this.env, ...env } });
  }

  /** The same in a process of its own, which reads the journal of this computer's runs again. */
  orphansApart(...args: readonly string[]): Promise<Ran> {
    return command(this.#service, ["orphans", ...args], { cwd: this.folder, env: this.env });
  }

  async report(...args: readonly string[]): Promise<ReportJson> {
    return JSON.parse((await this.orphans("--json", ...args)).out) as ReportJson;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}
