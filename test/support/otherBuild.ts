// Another build of the service, as after an upgrade: the same files in another folder, with the packages of this one.
import { cpSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { serviceMain } from "./built.ts";

/** Copies the build, and returns its command and how to remove it. */
export function otherBuild(): { readonly main: string; remove(): void } {
  const dist = join(dirname(serviceMain), "..");
  const folder = join(__dirname, `../../node_modules/.cache/pulumi-machines/build-${process.pid}`);
  cpSync(dist, join(folder, "dist"), { recursive: true });
  cpSync(join(dist, "../package.json"), join(folder, "package.json"));
  return {
    main: join(folder, "dist/service/main.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
