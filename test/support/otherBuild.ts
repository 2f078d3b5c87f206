// Another build of the service, as after an upgrade: the same files in another folder, with the packages of this one.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { version } from "../../service/version.ts";
import type { Change } from "../service/histories/bugs.ts";

/** The changes that make a build another version, with a column more in its tables. */
export const asVersion = (newer: string): readonly Change[] => [
  { find: `"${version}"`, replace: JSON.stringify(newer) },
  {
    find: "const currentSchema = () => ",
    replace:
      "migrations.push(\"ALTER TABLE apps ADD COLUMN note TEXT; UPDATE apps SET note = 'changed'\");\nconst currentSchema = () => ",
  },
];

/**
 * Copies the build that a command is of, perhaps with changes of its code, such as another version or other tables. Returns the command of
 * the copy and how to remove it.
 */
export function otherBuild(main: string, changes: readonly Change[] = []): { readonly main: string; remove(): void } {
  const dist = join(dirname(main), "..");
  const folder = join(dist, `../../node_modules/.cache/pulumi-machines/build-${process.pid}`);
  cpSync(dist, join(folder, "dist"), { recursive: true });
  cpSync(join(dist, "../package.json"), join(folder, "package.json"));
  changeCode(join(folder, "dist/service"), changes);
  return {
    main: join(folder, "dist/service/main.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Changes the code in a folder. Throws for a change that no longer fits it, because it would test nothing. */
export function changeCode(folder: string, changes: readonly Change[]): void {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
  for (const { find, replace } of changes) {
    const found = files.filter((file) => readFileSync(join(folder, file), "utf8").includes(find));
    if (found.length === 0) throw new Error(`the built service does not contain ${find}`);
    for (const file of found) {
      const at = join(folder, file);
      writeFileSync(
        at,
        readFileSync(at, "utf8").replaceAll(find, () => replace),
      );
    }
  }
}
