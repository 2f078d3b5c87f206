// The commands that print what watches the service: the alert rules of Prometheus, and the dashboard of Grafana.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { ownFolder } from "../console/built.ts";

/** A file of this package. Its folder is beside `dist/`, or in that of the sources. */
function watchFile(name: string): string {
  const own = ownFolder();
  const found = [join(own, "watch", name), join(own, "../../watch", name)].find((file) => existsSync(file));
  if (found === undefined) throw new Error(`this package lacks watch/${name}; install machines-service again`);
  return readFileSync(found, "utf8");
}

/** Adds the commands. */
export function addWatch(program: Command): void {
  const command = program.command("watch").description("print what watches the service");
  const add = (name: string, file: string, description: string): void => {
    command
      .command(name)
      .description(description)
      .action(() => void process.stdout.write(watchFile(file)));
  };
  add("rules", "alerts.yaml", "print the alert rules for Prometheus");
  add("dashboard", "dashboard.json", "print the dashboard for Grafana");
}
