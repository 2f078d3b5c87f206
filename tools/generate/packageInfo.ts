// What the package schema says of the package as a whole: who made it, where it is, what its SDKs are called.

// ASSUMED: the project lives here, and its releases carry the plugin; nothing has been published yet.
const home = "github.com/pulumi-machines/pulumi-machines";

/** Go's import path of the SDK, which is also the path of its module: Pulumi looks for `pulumi-plugin.json` at the root of one. */
export const goImportPath = `${home}/sdk/go/machines`;

// Otherwise each SDK would have to be told the version of the plugin it was made for while it is published.
const respectSchemaVersion = true;

/** The head of the package schema. */
export const packageInfo = (version: string) => ({
  name: "machines",
  displayName: "Machines",
  version,
  description:
    "Apps, Machines and volumes of a Machines Control Service: small VMs that run container images, with their storage.",
  // Those with a slash are the Pulumi Registry's: where it lists the package, and that it is no bridge and no component.
  keywords: ["pulumi", "machines", "infrastructure-as-code", "category/infrastructure", "kind/native"],
  homepage: `https://${home}`,
  repository: `https://${home}`,
  license: "Apache-2.0",
  publisher: "pulumi-machines",
  pluginDownloadURL: `github://api.${home}`,
});

/** What Pulumi's generators want to know beyond the schema. */
export const languages = {
  nodejs: {
    packageName: "pulumi-machines-plugin",
    packageDescription:
      "Every resource of the Machines Control Service as a typed class for Pulumi programs, with the provider plugin.",
    respectSchemaVersion,
  },
  python: { packageName: "pulumi_machines", pyproject: { enabled: true }, respectSchemaVersion },
  go: { importBasePath: goImportPath, generateResourceContainerTypes: true, respectSchemaVersion },
  csharp: { rootNamespace: "PulumiMachines", respectSchemaVersion },
  java: { basePackage: "io.github.pulumimachines", respectSchemaVersion },
};
