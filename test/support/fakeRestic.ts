// A program that does what restic does, as far as whole backups need it: each snapshot is a folder. It is there on every computer, and quick.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterThisTest } from "./leftovers.ts";

const program = (repository: string): string => `#!${process.execPath}
const { cpSync, readdirSync, readFileSync, writeFileSync } = require("fs");
const { join } = require("path");
const at = (...names) => join(${JSON.stringify(repository)}, ...names);
const args = process.argv.slice(4);
const valuesOf = (option) => args.filter((_, i) => args[i - 1] === option);
const all = readdirSync(at())
  .filter((name) => name.endsWith(".json"))
  .sort()
  .map((name) => JSON.parse(readFileSync(at(name))));
if (args[0] === "snapshots") {
  const wanted = valuesOf("--tag").flatMap((list) => list.split(","));
  console.log(JSON.stringify(all.filter(({ tags }) => wanted.every((tag) => tags.includes(tag)))));
}
if (args[0] === "dump") process.stdout.write(readFileSync(at(args.at(-2), args.at(-1).slice(1))));
if (args[0] === "restore") cpSync(at(args[1].split(":")[0]), valuesOf("--target")[0], { recursive: true });
if (args[0] === "backup") {
  const id = String(all.length + 1).padStart(4, "0");
  cpSync(".", at(id), { recursive: true });
  writeFileSync(at(id + ".json"), JSON.stringify({ id, time: new Date(), tags: valuesOf("--tag"), paths: ["/"] }));
  console.log(JSON.stringify({ message_type: "summary", snapshot_id: id }));
}
`;

/** A repository that is removed after the test, and what opens it: as the service takes it, and as options of commands. */
export function fakeRepository() {
  const root = mkdtempSync(join(tmpdir(), "machines-repository-"));
  afterThisTest(() => rmSync(root, { recursive: true, force: true }));
  const [at, restic, passphraseFile] = [join(root, "repository"), join(root, "restic"), join(root, "passphrase")];
  mkdirSync(at);
  writeFileSync(passphraseFile, "correct horse battery staple\n");
  writeFileSync(restic, program(at));
  chmodSync(restic, 0o755);
  const opening = ["--restic", restic, "--backup-passphrase-file", passphraseFile];
  return { repository: { at, restic, passphraseFile }, to: ["--to", at, ...opening], from: ["--from", at, ...opening] };
}
