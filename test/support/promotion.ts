// The example `promotion` as a project, on a service with an organization for each of its stacks.
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject } from "vitest";
import { startAdmin, type Admin } from "../../service/index.ts";
import { addToken } from "../../service/store/tokens.ts";
import { send } from "./around.ts";
import { Stack, type Binding, type Ran } from "./stack.ts";
import { startService } from "./startService.ts";

export const image = (tag: string): string => `registry.example.com/shop:${tag}`;
export const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;

interface Release {
  readonly image: string;
  readonly digest: string;
  readonly machines: readonly string[];
  readonly promotedBy?: string;
  readonly promotedAt?: string;
}

/** Registers an image with a digest on the service: another digest means that the tag was moved. */
export async function listImage({ url, token }: Admin, reference: string, to: string): Promise<void> {
  const response = await fetch(`${url}/images`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ reference, digest: to }),
  });
  expect(response.status).toBe(204);
}

/** A service with an organization for each stack, and the example's project. */
export async function prepare(name: string, binding: Binding) {
  const installed = inject("installed");
  const service = await startService();
  const admin = await startAdmin({ service: service.service, listen: { host: "127.0.0.1", port: 0 } });
  const tokens = { dev: "", staging: "", prod: "", "staging-read": "", "prod-read": "", "dev-read": "" };
  for (const key of Object.keys(tokens) as (keyof typeof tokens)[]) {
    tokens[key] = `token-of-${name}-${key}-c4n4ry`;
    const grant = {
      slug: `acme-${key.replace("-read", "")}`,
      role: key.endsWith("-read") ? "read" : "own",
      expiresAt: null,
    } as const;
    addToken(service.service.context.store, tokens[key], grant, Date.now());
  }
  const stack = new Stack(installed, name, binding);
  stack.example("promotion");
  const { scripts } = JSON.parse(readFileSync("examples/promotion/package.json", "utf8")) as { scripts: object };
  writeFileSync(join(stack.dir, "package.json"), JSON.stringify({ name: "promotion", main: "index.ts", scripts }));
  stack.checkTypes(false); // the tests of the examples check types
  symlinkSync(join(installed, "node_modules"), join(stack.dir, "node_modules"));
  return {
    service,
    tokens,
    stack,
    list: (tag: string, to: string): Promise<void> => listImage(admin, image(tag), to),
    /** Runs a script of the example, like `npm run NAME -- ARGS`. */
    npm: (script: string, ...args: string[]): Promise<Ran> =>
      stack.run(["run", "-s", script, "--", ...args], { command: "npm", plain: true }),
    releaseOf: async (of: string): Promise<Release> =>
      (JSON.parse(await stack.ok("stack", "output", "--json", "--stack", of)) as { release: Release }).release,
    /** The number of Apps in an organization. */
    apps: async (of: keyof typeof tokens): Promise<number> => {
      const answer = await send<{ total_apps: number }>(
        { url: service.url, token: tokens[of] },
        "GET",
        `/v1/apps?org_slug=acme-${of}`,
      );
      return answer.total_apps;
    },
    close: async () => {
      await admin.close();
      await service.close();
    },
  };
}

export type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Output of a run that must succeed. */
export const done = async (run: Promise<Ran>): Promise<string> => {
  const { code, output } = await run;
  expect(code, output).toBe(0);
  return output;
};
/** Output of a run that must report or refuse something. */
export const refused = async (run: Promise<Ran>): Promise<string> => {
  const { code, output } = await run;
  expect(code, output).toBe(1);
  return output;
};
