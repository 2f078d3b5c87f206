// The package schema contains every declaration, and nothing that Pulumi's generators would misinterpret.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Field } from "../../api/schema.ts";
import { configKeys } from "../../provider/client/config.ts";
import { withoutWriteOnly, writeOnlyIn } from "../../provider/core/writeOnly.ts";
import { resources } from "../../provider/registry.ts";
import { enumName } from "../../tools/generate/enumName.ts";
import { cliSchema } from "../../tools/generate/cliSchema.ts";
import { programsOf, withPrograms } from "../../tools/generate/programs.ts";
import { packageSchema, type PackageSpec, type Property } from "../../tools/generate/schema.ts";

const committed = readFileSync("provider/schema.json", "utf8");
const programs = programsOf(JSON.parse(committed) as PackageSpec);
const { version } = JSON.parse(readFileSync("sdk/nodejs/package.json", "utf8")) as { version: string };
const schema = packageSchema(version);
const all = Object.values(resources);
const token = (name: string): string => `machines:index:${name}`;

/** Every property, by its path. */
const properties: [string, Property][] = [
  ...Object.entries(schema.config.variables).map(([name, property]): [string, Property] => [
    `config.${name}`,
    property,
  ]),
  ...Object.entries(schema.provider.inputProperties).map(([name, property]): [string, Property] => [
    `provider.${name}`,
    property,
  ]),
  ...Object.entries(schema.resources).flatMap(([at, { inputProperties, properties }]) => [
    ...Object.entries(inputProperties).map(([name, property]): [string, Property] => [
      `${at}.${name} (input)`,
      property,
    ]),
    ...Object.entries(properties).map(([name, property]): [string, Property] => [`${at}.${name}`, property]),
  ]),
  ...Object.entries(schema.types).flatMap(([at, { properties = {} }]) =>
    Object.entries(properties).map(([name, property]): [string, Property] => [`${at}.${name}`, property]),
  ),
];

describe("the package", () => {
  test("the package matches the committed file, however often it is generated", () => {
    expect(`${JSON.stringify(cliSchema(withPrograms(packageSchema(version), programs)), null, 2)}\n`).toBe(committed);
    expect(JSON.stringify(packageSchema(version))).toBe(JSON.stringify(schema));
  });

  test("every input that takes any text has a flag in `pulumi do`, and no other input has changed for it", () => {
    const ofCli = (JSON.parse(committed) as typeof schema).resources;
    const changed = Object.entries(schema.resources).flatMap(([at, { inputProperties }]) =>
      Object.entries(inputProperties).flatMap(([name, property]) => {
        const forFlag = ofCli[at]?.inputProperties[name];
        if (property.oneOf?.some(({ type }) => type === "string"))
          expect(forFlag, name).toMatchObject({ type: "string", description: property.description });
        else expect(forFlag, name).toEqual(JSON.parse(JSON.stringify(property)));
        return property.oneOf && forFlag?.oneOf === undefined ? [`${at.replace("machines:index:", "")}.${name}`] : [];
      }),
    );
    expect(changed).toEqual([
      "IpAssignment.region",
      "Machine.region",
      "PostgresCluster.region",
      "PostgresCluster.plan",
      "Volume.region",
    ]);
  });

  test("the package has its publisher, its repository and its keywords", () => {
    for (const key of [
      "displayName",
      "description",
      "homepage",
      "repository",
      "license",
      "publisher",
      "pluginDownloadURL",
    ])
      expect(schema[key], key).toMatch(/\S/);
    expect(schema["keywords"]).toEqual(expect.arrayContaining(["category/infrastructure", "kind/native"]));
    expect(schema["version"]).toBe(version);
  });

  test("the package has the same version in every language", () => {
    const languages = schema["language"] as Record<string, { respectSchemaVersion?: boolean }>;
    expect(Object.keys(languages).sort()).toEqual(["csharp", "go", "java", "nodejs", "python"]);
    for (const [name, language] of Object.entries(languages)) expect(language.respectSchemaVersion, name).toBe(true);
  });
});

describe("every description is present:", () => {
  test("every resource has a description", () => {
    for (const [at, { description }] of Object.entries(schema.resources)) expect(description, at).toMatch(/\w.*\.$/s);
  });
  test("every type has a description", () => {
    for (const [at, { description }] of Object.entries(schema.types)) expect(description, at).toMatch(/\w.*\.$/s);
  });
  test("every property has a description", () => {
    for (const [at, { description }] of properties) expect(description, at).toMatch(/\w.*\.$/s);
  });

  test("descriptions name defaults and units", () => {
    const units: readonly [RegExp, RegExp][] = [
      [/(Mb)$/, /\bMi?B\b/],
      [/(Gb|GbLimit)$/, /\bGB\b/],
      [/(Bytes|PlaintextBytes)$/, /[Bb]ytes/],
      [/Seconds$|(?:idle|Read)Timeout$/, /[Ss]econds?/],
      [/Percent$/, /[Pp]ercent/],
      [/Retention$/, /[Dd]ays/],
    ];
    for (const [at, { description = "", default: standard }] of properties) {
      if (standard !== undefined && !at.startsWith("config."))
        expect(description, at).toContain(`Default: \`${JSON.stringify(standard)}\`.`);
      for (const [name, unit] of units)
        if (name.test(at.replace(" (input)", ""))) expect(description, at).toMatch(unit);
    }
  });
});

describe("enums", () => {
  const enums = Object.entries(schema.types).filter(([, type]) => type.enum);

  test("name every value, and no name is used twice", () => {
    expect(enums.length).toBeGreaterThan(10);
    for (const [at, { enum: values = [] }] of enums) {
      for (const { name } of values) expect(name, at).toMatch(/^[A-Z][A-Za-z0-9_]*$/);
      expect(new Set(values.map(({ name }) => name.toLowerCase())).size, at).toBe(values.length);
    }
  });

  test.each([
    ["on-failure", "OnFailure"],
    ["app_name", "AppName"],
    ["SIGUSR1", "SIGUSR1"],
    ["TLSv1.2", "Tlsv1_2"],
    ["http", "Http"],
  ])("%s is called %s", (value, name) => {
    expect(enumName(value)).toBe(name);
  });
});

describe("configuration", () => {
  test("the configuration comes from the environment if the stack does not set it", () => {
    for (const [name, key] of Object.entries(configKeys)) {
      expect(key.environment, name).toMatch(/^MACHINES_[A-Z_]+$/);
      expect(schema.config.variables[name]?.defaultInfo?.environment, name).toEqual([key.environment]);
      expect(schema.provider.inputProperties[name]?.description, name).toContain(key.environment);
    }
  });

  // SDKs write defaults into the stack, and the Node.js SDK does not mark values from the environment as secret.
  test("configuration of an explicit provider is left to the provider if the program does not set it", () => {
    for (const [name, property] of Object.entries(schema.provider.inputProperties)) {
      expect(property.default, name).toBeUndefined();
      expect(property.defaultInfo, name).toBeUndefined();
    }
  });

  test("configuration keeps the token secret", () => {
    const secret = (found: Record<string, Property>) => Object.keys(found).filter((name) => found[name]?.secret);
    expect(secret(schema.config.variables)).toEqual(["token"]);
    expect(secret(schema.provider.inputProperties)).toEqual(["token"]);
  });
});

describe.each(all)("$name", ({ name, inputFields, outputFields, replaceOn }) => {
  const spec = schema.resources[token(name)];
  const marked = (fields: Readonly<Record<string, Field>>, mark: "secret") =>
    Object.keys(fields).filter((key) => fields[key]?.meta[mark]);

  test("the type marks every declared secret", () => {
    const secret = (found: Record<string, Property> = {}) => Object.keys(found).filter((key) => found[key]?.secret);
    expect(secret(spec?.inputProperties)).toEqual(marked(inputFields, "secret"));
    const stored = withoutWriteOnly({ inputFields }, inputFields) as typeof inputFields;
    expect(new Set(secret(spec?.properties))).toEqual(new Set(marked({ ...stored, ...outputFields }, "secret")));
  });

  test("the type has every input as an output, except those that are never stored, and marks required outputs", () => {
    const [unstored, stored] = [writeOnlyIn, withoutWriteOnly].map((of) =>
      Object.keys(of({ inputFields }, inputFields)),
    );
    const outputs = Object.keys(spec?.properties ?? {});
    expect(outputs).toEqual(expect.arrayContaining(stored ?? []));
    expect(outputs.filter((output) => unstored?.includes(output))).toEqual([]);
    const required = Object.keys(outputFields).filter((key) => !outputFields[key]?.optional);
    expect(spec?.required).toEqual(expect.arrayContaining([...required, ...(spec?.requiredInputs ?? [])]));
  });

  // With replaceOnChanges the engine would replace for a value that is unknown at preview; the provider decides that.
  test("the type describes what replaces it, and leaves the decision to the provider", () => {
    const top = replaceOn.filter((path) => !path.includes("."));
    const found = Object.entries(spec?.inputProperties ?? {}).filter(([, property]) => property.willReplaceOnChanges);
    expect(found.map(([key]) => key).sort()).toEqual(top.toSorted());
    expect(committed).not.toContain('"replaceOnChanges"');
  });

  test("the type avoids names that Pulumi's generators reserve", () => {
    for (const suffix of ["", "Args", "State"]) expect(schema.types[token(name + suffix)]).toBeUndefined();
  });
});

test("a nested input property whose change replaces is marked", () => {
  expect(schema.types[token("MachineMount")]?.properties?.["volume"]?.willReplaceOnChanges).toBe(true);
});
