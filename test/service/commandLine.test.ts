// The command line itself: its version, and names that it does not know.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { command, folder, unread } from "./command.ts";

const { version } = JSON.parse(readFileSync(join(__dirname, "../../service/package.json"), "utf8"));

test.each(["--version", "-v"])("%s prints the name and the version", async (option) => {
  expect(await command([option])).toEqual({ code: 0, out: `machines-service ${version}\n`, err: "" });
});

test.each([
  [["strat"], "unknown command 'strat'\n(Did you mean start?)"],
  [["stat"], "unknown command 'stat'\n(Did you mean status?)\n"],
  [["sta"], "unknown command 'sta'\n(Did you mean one of start, status?)\n"],
  [["start", "--lisen", "127.0.0.1:0"], "unknown option '--lisen'\n(Did you mean --listen?)"],
  [["start", "--port", "4281"], "unknown option '--port'\n(Did you mean --listen 127.0.0.1:4280?)\n"],
  [["start", "--host=0.0.0.0"], "unknown option '--host=0.0.0.0'\n(Did you mean --listen 127.0.0.1:4280?)\n"],
  [["ls", "--ap", "web"], "unknown option '--ap'\n(Did you mean --app?)"],
  [["org", "lst"], "unknown command 'lst'\n(Did you mean list?)"],
  [["token", "lst"], "there is no command token lst; did you mean list?"],
  [["token", "xyzzy"], "there is no command token xyzzy; there are create, list, rotate, revoke"],
])("%j is refused with the nearest name", async (args, message) => {
  const { code, out, err } = await command(args, { ...process.env, MACHINES_SERVICE_DATA: folder() });
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
});

test("a reader that needs no more, as head does, is no error", async () => {
  const { code, err } = await unread(["status", "--data", folder()]);
  expect([code, err]).toEqual([3, ""]);
});
