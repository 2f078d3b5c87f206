// Pulumi's language hosts for Java, .NET and YAML, for the tests of programs in these languages. Pulumi's installer puts them
// beside its CLI; otherwise they are built once. Each is built from the versions of Pulumi's modules that it was released
// with: with those of our CLI they do not compile.
import fs from "node:fs";
import path from "node:path";
import { isExecutable } from "../lib/paths.mjs";
import { goProgram } from "./goProgram.mjs";

const PACKAGES = {
  dotnet: "github.com/pulumi/pulumi-dotnet/pulumi-language-dotnet/v3",
  java: "github.com/pulumi/pulumi-java/pkg/cmd/pulumi-language-java",
  yaml: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
};

/**
 * The folder of a language host, for PATH; or the reason why there is none.
 * @param {"dotnet" | "java" | "yaml"} language
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ dir: string, reason?: undefined } | { dir?: undefined, reason: string }>}
 */
export async function languageHost(language, env) {
  const name = `pulumi-language-${language}`;
  const found = findHost(language, env);
  if (found !== undefined) return { dir: found };
  const { program, reason } = await goProgram(
    {
      name,
      what: `the language host for ${language}`,
      source: `tools/pulumi/${language}-host`,
      package: PACKAGES[language],
    },
    env,
  );
  return program === undefined ? { reason } : { dir: path.dirname(program) };
}

/** The folder in which the CLI finds a language host: one on PATH, or the CLI's own. */
export function findHost(language, env) {
  const dirs = (env.PATH ?? "").split(path.delimiter);
  const find = (name, among) => among.find((dir) => isExecutable(path.join(dir, name)));
  const pulumi = find("pulumi", dirs);
  const beside = pulumi === undefined ? [] : [path.dirname(fs.realpathSync(path.join(pulumi, "pulumi")))];
  return find(`pulumi-language-${language}`, [...dirs, ...beside]);
}
