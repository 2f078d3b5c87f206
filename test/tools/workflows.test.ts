// What no one may change by accident in the workflows of GitHub. `npm run check` checks their syntax.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly if?: string;
  readonly environment?: string;
  readonly needs?: string | readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const folder = ".github/workflows";
const textOf = (file: string): string => readFileSync(join(folder, file), "utf8");
const read = (file: string): Workflow => parse(textOf(file)) as Workflow;
const stepsOf = (workflow: Workflow): Step[] => Object.values(workflow.jobs).flatMap(({ steps }) => steps);
const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };

describe.each(readdirSync(folder))("%s", (file) => {
  const workflow = read(file);

  test("every action is pinned to a commit, with its version beside it", () => {
    const uses = textOf(file).match(/^.*\buses:.*$/gm) ?? [];
    expect(uses.length).toBe(stepsOf(workflow).filter((step) => step.uses !== undefined).length);
    for (const line of uses) expect(line).toMatch(/uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test("a job that says nothing else may only read", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
  });

  test("its steps run commands and scripts that exist", () => {
    for (const { run = "" } of stepsOf(workflow)) {
      for (const [, script = ""] of run.matchAll(/npm run (?:-s )?([\w:-]+)/g))
        expect(scripts).toHaveProperty([script]);
      for (const [, script = ""] of run.matchAll(/(?:^|\s)(\.ci\/\S+|tools\/\S+\.mjs)/g))
        expect(existsSync(script), script).toBe(true);
    }
  });

  // What is pasted into a script is run by it: a name of a branch may contain commands.
  test("its scripts get values only by variables", () => {
    for (const { run = "" } of stepsOf(workflow)) expect(run).not.toContain("${{");
  });
});

describe("a release", () => {
  const { jobs } = read("release.yml");
  const publishing = Object.entries(jobs).filter(([, { steps }]) =>
    steps.some(
      ({ run = "", uses = "", with: given }) =>
        /publish\.mjs|cosign/.test(run) || /pypi-publish/.test(uses) || given?.["push"] === true,
    ),
  );

  test("only jobs that a reviewer allows publish, after the tests, the build and the signatures", () => {
    expect(publishing.map(([name]) => name)).toEqual(["sign", "github", "npm", "pypi", "maven", "go", "publish-image"]);
    const all = (name: string): string[] => {
      const { needs = [] } = jobs[name] ?? {};
      return [needs].flat().flatMap((before) => [before, ...all(before)]);
    };
    for (const [name, job] of publishing) {
      if (name !== "sign") expect(job.environment).toBe("release");
      expect(all(name)).toEqual(expect.arrayContaining(["test", "build"]));
      if (name !== "sign") expect(all(name)).toContain("sign");
    }
  });

  test("nothing is signed or published when it is started by hand", () => {
    expect(jobs["sign"]?.if).toBe("github.event_name == 'push'");
  });

  test("a job has no rights but those of its own target", () => {
    const rights = publishing.map(([name, { permissions = {} }]) => [
      name,
      Object.keys(permissions).filter((of) => permissions[of] === "write"),
    ]);
    expect(Object.fromEntries(rights)).toEqual({
      sign: ["id-token", "attestations"],
      github: ["contents"],
      npm: ["id-token"],
      pypi: ["id-token"],
      maven: [],
      go: ["contents"],
      "publish-image": ["packages", "id-token", "attestations"],
    });
  });
});

test("Dependabot looks at folders that exist, and at every module of Go under tools/", () => {
  const { updates } = parse(readFileSync(".github/dependabot.yml", "utf8")) as {
    updates: readonly { directory?: string; directories?: readonly string[]; "package-ecosystem": string }[];
  };
  const folders = updates.flatMap(({ directory, directories = [] }) => [directory ?? [], directories].flat(2));
  for (const at of folders) expect(existsSync(`.${at}`), at).toBe(true);
  const modules = readdirSync("tools", { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith("go.mod"))
    .map((file) => `/tools/${file.slice(0, -"/go.mod".length)}`);
  expect(folders).toEqual(expect.arrayContaining(modules));
});
