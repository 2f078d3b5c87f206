// The files of an image with real shells and full-screen programs: those of this computer, with the libraries that they need.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { tarOf } from "../../service/runtime/docker/tar.ts";

const programs = ["bash", "sh", "stty", "sleep", "less", "cat", "yes", "seq"];
const places = ["/usr/bin", "/bin"];

const pathOf = (program: string): string | undefined =>
  places.map((place) => `${place}/${program}`).find((path) => existsSync(path));

/** Whether this computer has the programs, and can say which libraries they need. */
export const hasShells = process.platform === "linux" && [...programs, "ldd"].every((name) => pathOf(name));

// What `less` knows of this terminal.
const terminals = ["/usr/share/terminfo", "/lib/terminfo"].map((place) => `${place}/x/xterm-256color`);

const librariesOf = (path: string): readonly string[] =>
  execFileSync("ldd", [path], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);

const filesOf = (name: string): readonly (readonly [string, string])[] => {
  const path = realpathSync(pathOf(name) ?? name);
  return [[`/bin/${name}`, path], ...librariesOf(path).map((library) => [library, realpathSync(library)] as const)];
};

/** The files of an image with these programs, or with all of them, as a tar archive. */
export function archiveOfShells(only = programs): Promise<Buffer> {
  const terminal = terminals.find((path) => existsSync(path));
  const files = new Map([...only.flatMap(filesOf), ...(terminal ? [[terminal, terminal] as const] : [])]);
  return tarOf([
    ...[...files].map(([path, from]) => ({ name: path.slice(1), mode: 0o755, contents: readFileSync(from) })),
    { name: "tmp", type: "directory", mode: 0o1777 },
    { name: "work", type: "directory", mode: 0o777 },
  ]);
}
