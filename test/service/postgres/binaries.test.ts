// The links between PostgreSQL's libraries, which npm cannot store.
import { lstatSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { restoreLinks } from "../../../service/runtime/postgres/binaries.ts";
import { afterThisTest } from "../../support/leftovers.ts";

/** A package that lists one link. */
function packageWithLink() {
  const folder = mkdtempSync(join(tmpdir(), "machines-binaries-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  const native = join(folder, "native");
  mkdirSync(join(native, "lib"), { recursive: true });
  const link = { source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" };
  writeFileSync(join(native, "pg-symlinks.json"), JSON.stringify([link]));
  return { native, link: join(folder, link.target) };
}

test("links that are missing are created, relative to their own folder", () => {
  const { native, link } = packageWithLink();
  restoreLinks(native);
  expect(readlinkSync(link)).toBe("libpq.so.5.18");
});

test("a link that another process creates between the look and the creation is kept", () => {
  const { native, link } = packageWithLink();
  // The look does not see a link to a missing file, just as it does not see one that is created a moment later.
  symlinkSync("libpq.so.5.18", link);
  restoreLinks(native);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
});
