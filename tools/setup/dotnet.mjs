// The SDK of .NET for programs in C#, which is never installed here.
import { quiet } from "../lib/process.mjs";

const MINIMUM = 8; // the framework of the programs

/** Why programs in C# cannot be built, or undefined. */
export async function dotnetProblem(env) {
  const wanted = `the SDK of .NET ${MINIMUM} or newer (https://dotnet.microsoft.com/download)`;
  const { code, stdout } = await quiet("dotnet", ["--version"], { env, timeout: 120_000 });
  const [version] = /^\d+\.\S+$/m.exec(stdout) ?? [];
  if (code === 0 && Number.parseInt(version ?? "0", 10) >= MINIMUM) return undefined;
  return `it needs ${wanted}${version === undefined ? "" : `; this is ${version}`}`;
}

/** Its output must not depend on the user's language, and it must not write to the home folder of a first use. */
export const dotnetSettings = {
  DOTNET_CLI_TELEMETRY_OPTOUT: "1",
  DOTNET_CLI_UI_LANGUAGE: "en",
  DOTNET_NOLOGO: "1",
};

/** Whether a build failed because NuGet's registry did not answer. */
export const isWithoutPackages = (output) => /\bNU1(?:301|101|102)\b/.test(output);
