// The templates of `pulumi new` for the time before the packages are published: they install the packages of this clone.
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "./paths.mjs";

/** In which file of a template a package is named, and how the clone's own takes its place. @param packed the npm packages' files by name */
const changes = (packed) => ({
  "typescript/package.json": (text) =>
    text.replace(
      /"((?:pulumi-machines|machines-service))": "\^[\d.]+"/g,
      (_, name) => `"${name}": "file:${packed[name]}"`,
    ),
  "python/requirements.txt": (text) => text.replace(/^pulumi_machines.*$/m, () => inRoot("sdk/python")),
  "csharp/${PROJECT}.csproj": (text) =>
    text.replace(
      /<PackageReference Include="(PulumiMachines\.Machines)" .*\/>/,
      (_, name) => `<ProjectReference Include="${inRoot("sdk/dotnet", `${name}.csproj`)}" />`,
    ),
  "go/go.mod": (text) => {
    const [module] = /\S+\/sdk\/go\/machines(?= v)/.exec(text) ?? [];
    return `${text}\nreplace ${module} => ${JSON.stringify(inRoot("sdk/go/machines"))}\n`;
  },
});

/** Writes them into a folder. @throws if a template names no package where one is expected */
export function writeLocalTemplates(folder, packed) {
  fs.cpSync(inRoot("templates"), folder, { recursive: true });
  for (const [file, change] of Object.entries(changes(packed))) {
    const text = fs.readFileSync(path.join(folder, file), "utf8");
    const changed = change(text);
    if (changed === text) throw new Error(`templates/${file} names no package of this repository`);
    fs.writeFileSync(path.join(folder, file), changed);
  }
  return folder;
}
