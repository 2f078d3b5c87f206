// Another build of the service, as after an upgrade: the same files in another folder, with the packages of this one.
import { cpSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

/** Copies the build that a command is of, and returns the command of the copy and how to remove it. */
export function otherBuild(main: string): { readonly main: string; remove(): void } {
  const dist = join(dirname(main), "..");
  const folder = join(dist, `../../node_modules/.cache/pulumi-machines/build-${process.pid}`);
  cpSync(dist, join(folder, "dist"), { recursive: true });
  cpSync(join(dist, "../package.json"), join(folder, "package.json"));
  return {
    main: join(folder, "dist/service/main.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
