// Deployment files as programs: each key is converted or reported, and the provider accepts the result.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "smol-toml";
import { describe, expect, test } from "vitest";
import { isObject } from "../../../api/schema.ts";
import { filesBeside } from "../../../cli/conversion/localFiles.ts";
import { convert, sentenceOf, type Conversion } from "../../../cli/conversion/conversion.ts";
import { languages } from "../../../cli/organization/languages.ts";
import { declarationsIn, type Declaration, type Expression } from "../../../cli/organization/program.ts";
import { checkInputs } from "../../../provider/core/check.ts";
import { pathText } from "../../../provider/core/values.ts";
import { Run } from "../../../provider/core/run/run.ts";
import { resources } from "../../../provider/registry.ts";
import { noIntents } from "../../support/jumpingClient.ts";

const folder = join(__dirname, "files");
const files = readdirSync(folder).filter((name) => name.endsWith(".toml"));
const textOf = (name: string): string => readFileSync(join(folder, name), "utf8");

const converted = (text: string, regions?: string): Conversion =>
  convert({ name: "fly.toml", text, regions, read: filesBeside(join(folder, "fly.toml")).read });

/** A file of the folder. One has no region. */
const ofFile = (name: string, text = textOf(name)): Conversion =>
  converted(text, name === "old-services.toml" ? "ams" : undefined);

const programIn = ({ program }: Conversion, language: keyof typeof languages = "typescript"): string =>
  languages[language].program(program, "plugin");

const declared = ({ program }: Conversion): readonly Declaration[] =>
  program.sections.flatMap(({ blocks }) => blocks.flatMap(declarationsIn));

/** The value that the engine would send. */
function valueOf(expression: Expression, conversion: Conversion): unknown {
  switch (expression.is) {
    case "literal":
      return expression.value;
    case "list":
      return expression.items.map((one) => valueOf(one, conversion));
    case "object":
    case "map":
      return Object.fromEntries(expression.entries.map(([name, value]) => [name, valueOf(value, conversion)]));
    case "id":
      return "shop";
    case "column":
      throw new Error("a conversion has no loops");
    case "setting": {
      const setting = conversion.program.settings.find(({ key }) => key === expression.key);
      return (setting?.isSecret === false ? setting.default : undefined) ?? "registry.example.com/shop";
    }
  }
}

const inputsOf = (conversion: Conversion, type: string, at = 0): Record<string, unknown> => {
  const found = declared(conversion).filter((one) => one.type === type)[at];
  return Object.fromEntries((found?.inputs ?? []).map(([name, value]) => [name, valueOf(value, conversion)]));
};

const configOf = (conversion: Conversion, at = 0) =>
  inputsOf(conversion, "Fleet", at)["config"] as Record<string, unknown>;

const remarksOf = ({ remarks }: Conversion): readonly string[] => remarks.map(sentenceOf);

/** Every value of a file by its path. */
function* leavesOf(value: unknown, path: readonly (string | number)[] = []): Generator<readonly (string | number)[]> {
  const inner = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  for (const [name, one] of inner) yield* leavesOf(one, [...path, name]);
  if (inner.length === 0 && path.length > 0 && !Array.isArray(value) && !isObject(value)) yield path;
}

/** The file without the value at a path. */
function without(text: string, path: readonly (string | number)[]): string {
  const values = parse(text);
  const holder = path
    .slice(0, -1)
    .reduce<unknown>((at, part) => (at as Record<string | number, unknown>)[part], values);
  const last = path.at(-1) ?? "";
  if (Array.isArray(holder)) holder.splice(Number(last), 1);
  else delete (holder as Record<string | number, unknown>)[last];
  return stringify(values);
}

describe.each(files)("%s", (name) => {
  test("the converted file has inputs that the provider accepts", () => {
    const conversion = ofFile(name);
    const run = new Run(() => noIntents);
    for (const { type, inputs } of declared(conversion)) {
      const resource = resources[type];
      if (!resource) throw new Error(type);
      const news = Object.fromEntries(inputs.map(([property, value]) => [property, valueOf(value, conversion)]));
      expect(checkInputs(resource, {}, news, { randomHex: () => "0123456", run }).problems).toEqual([]);
    }
  });

  test("the converted file has no key without an effect on the program or on the list", () => {
    const text = textOf(name);
    const said = (one: Conversion) => [programIn(one), ...one.secrets].join("\n").replaceAll(/line \d+/g, "");
    const whole = said(ofFile(name, stringify(parse(text))));
    const plain = (key: string): string => key.replaceAll("[0]", "");
    const listed = ofFile(name).remarks.map(({ key }) => plain(key));
    const idle = [...leavesOf(parse(text))].filter((path) => {
      const key = plain(pathText(path));
      // The default of these is what most files write.
      if (/\b(?:protocol|processes(?:\[\d+\])?)$|^checks\.\w+\.type$/.test(key)) return false;
      if (listed.some((one) => key.startsWith(one))) return false;
      try {
        return said(ofFile(name, without(text, path))) === whole;
      } catch {
        // The key is required.
        return false;
      }
    });
    expect(idle.map((path) => path.join("."))).toEqual([]);
  });

  test("the converted file says the line of each remark", () => {
    const lines = textOf(name).split("\n");
    for (const { line, key } of ofFile(name).remarks) {
      const last =
        key
          .replaceAll(/\[\d+\]/g, "")
          .split(/\.|\["|"\]/)
          .filter((part) => part !== "")
          .at(-1) ?? "";
      expect(`${lines[line - 1]}`).toContain(key.startsWith("mounts") && name === "sqlite.toml" ? "" : last);
    }
  });

  test.each(["python", "go", "yaml"] as const)("the converted file is a program in %s", (language) => {
    const conversion = ofFile(name);
    const text = programIn(conversion, language);
    for (const remark of remarksOf(conversion)) expect(text).toContain(remark.replaceAll(/\s+/g, " "));
  });
});

describe("a conversion", () => {
  test("a conversion makes a fleet of each process group, with its own command, size and services", () => {
    const conversion = ofFile("rails-sidekiq.toml");
    expect(declared(conversion).map(({ key, dependsOn = [] }) => [key, ...dependsOn])).toEqual([
      ["App"],
      ["Fleet web"],
      ["Fleet worker", "Fleet web"],
    ]);
    expect(inputsOf(conversion, "Fleet")).toMatchObject({
      name: "web",
      regions: { iad: 1 },
      releaseCommand: ["./bin/rails", "db:prepare"],
      config: {
        guest: { cpuKind: "shared", cpus: 2, memoryMb: 512 },
        init: { cmd: ["bundle", "exec", "puma", "-C", "config/puma.rb"], swapSizeMb: 512 },
        statics: [{ guestPath: "/rails/public", urlPrefix: "/" }],
      },
    });
    expect(configOf(conversion, 1)).toEqual({
      image: "registry.example.com/shop",
      guest: { cpuKind: "shared", cpus: 1, memoryMb: 512 },
      init: { cmd: ["bundle", "exec", "sidekiq", "-q", "default", "-c", "5"], swapSizeMb: 512 },
    });
  });

  test("a conversion counts times of checks in milliseconds and the others in seconds, as the file does", () => {
    const conversion = ofFile("old-services.toml");
    expect(configOf(conversion)).toMatchObject({
      stopConfig: { signal: "SIGINT", timeout: "5s" },
      services: [{ checks: [{ type: "tcp" }, { type: "http", interval: "10s", timeout: "2s", gracePeriod: "5s" }] }],
    });
    expect(inputsOf(conversion, "Fleet")).toMatchObject({ onFailure: "rollback" });
    expect(inputsOf(ofFile("canary.toml"), "Fleet")).toMatchObject({
      strategy: { type: "canary", maxUnavailable: "34%" },
      progressDeadline: "300s",
    });
  });

  test("a conversion writes no value that looks like a secret", () => {
    const conversion = ofFile("secrets-in-env.toml");
    expect([...conversion.secrets]).toEqual([
      ["databaseUrl", "env.DATABASE_URL"],
      ["sessionSecret", "env.SESSION_SECRET"],
    ]);
    for (const language of ["typescript", "python", "go", "yaml"] as const) {
      expect(programIn(conversion, language)).not.toContain("hunter22");
      expect(programIn(conversion, language)).not.toContain("k3jH8sLq0PzXw7Vb");
    }
  });

  test("a conversion names the key that was meant", () => {
    expect(remarksOf(ofFile("misspelt.toml"))).toEqual([
      "line 3, prmary_region: it is not a known key; did you mean primary_region?",
      "line 5, enviroment: it is not a known key; did you mean env?",
      "line 10, http_service.force_http: it is not a known key; did you mean force_https?",
      "line 11, http_service.concurency: it is not a known key; did you mean concurrency?",
      "line 15, deploy.stratgy: it is not a known key; did you mean strategy?",
      "line 18, vm[0].memmory: it is not a known key; did you mean memory?",
    ]);
  });

  test("a conversion names process groups that do not exist", () => {
    expect(remarksOf(ofFile("stray-groups.toml"))).toEqual([
      "line 6, processes.job_runner: the fleet of this group is called job-runner",
      "line 10, http_service.processes: there is no process group web",
      "line 12, services[0]: there is no process group job-runner; did you mean job_runner?",
      "line 19, mounts[0].source: the fleet names its volumes after its Machines",
    ]);
  });

  test("a conversion encodes the contents of files", () => {
    const [motd, key, own, ...others] = configOf(ofFile("files.toml"))["files"] as Record<string, string>[];
    expect(Buffer.from(motd?.["rawValue"] ?? "", "base64").toString()).toContain("Hello [world] # not a comment\n");
    expect(key).toEqual({ guestPath: "/etc/proxy/key.pem", secretName: "PROXY_KEY" });
    expect(Buffer.from(own?.["rawValue"] ?? "", "base64").toString()).toBe("listen 3128\n");
    expect(others).toEqual([]);
  });

  test("a conversion takes regions and counts from the command", () => {
    const conversion = converted(textOf("bluegreen.toml"), "ams:3, fra");
    expect(inputsOf(conversion, "Fleet")).toMatchObject({ regions: { ams: 3, fra: 2 } });
    expect(() => converted(textOf("bluegreen.toml"), "amsterdam")).toThrow('"amsterdam" is not a region');
    expect(() => converted(textOf("old-services.toml"))).toThrow("the file has no primary_region");
  });
});

const head = 'app = "a"\nprimary_region = "ams"\n';

test.each([
  ['app = "a\n', "fly.toml:1:9: this is not valid TOML: control characters are not allowed in strings"],
  [
    `${head}[env]\nA = 1\nA = 2\n`,
    "fly.toml:5:1: this is not valid TOML: trying to redefine an already defined table or value",
  ],
  [
    `${head}[http_service]\ninternal_port = "eighty"\n`,
    "fly.toml:4: http_service.internal_port: must be a whole number",
  ],
  [`${head}[deploy]\nstrategy = "fast"\n`, "fly.toml:4: deploy.strategy: Invalid option"],
  [`${head}kill_timeout = "soon"\n`, 'fly.toml:3: kill_timeout: "soon" is not a time, such as 10s or 1m30s'],
  [`${head}[vm]\nsize = "huge"\n`, 'fly.toml:4: vm[0].size: "huge" is not a size, such as shared-cpu-1x'],
  [`${head}[vm]\nmemory = "lots"\n`, 'fly.toml:4: vm[0].memory: "lots" is not a size, such as 512mb or 1gb'],
  [`${head}[processes]\napp = "sh -c 'x"\n`, "fly.toml:4: processes.app: a quote of this command is not closed"],
  [`${head}[processes]\na_b = ""\na-b = ""\n`, "two process groups would be the fleet a-b"],
  [`${head}[mounts]\ndestination = "/x"\ninitial_size = "big"\n`, 'mounts[0].initial_size: "big" is not a size'],
])("a conversion refuses %j", (text, message) => {
  expect(() => converted(text)).toThrow(message);
});
