// The command that opens the console, and the option of start.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { serviceMain } from "../../support/built.ts";
import { onTerminal } from "../../cli/terminal.ts";
import { hang } from "../../support/patience.mts";
import { command, folder, foreground, start } from "../command.ts";
import { browser, cookieOf, sessionOf, send, signIn } from "./browser.ts";

const codeIn = (text: string): string | undefined => /#code=(\S+)$/m.exec(text)?.[1];

test("it prints an address that signs in once, and does not write the code into the log", async () => {
  const data = folder();
  const { url, pid, end } = await foreground(data);
  const { code, out, err } = await command(["console", "--data", data]);
  expect([code, out, err]).toEqual([0, expect.stringMatching(new RegExp(`^${url}/#code=[\\w.-]+\\n$`)), ""]);
  const oneTime = codeIn(out) ?? "";
  const answer = await signIn(url, { code: oneTime });
  expect(answer.status).toBe(200);
  const visit = browser(url, sessionOf(answer));
  expect((await visit("GET", "/console/session")).body).toMatchObject({ isOperator: true, canWrite: false });
  const again = await signIn(url, { code: oneTime });
  expect(again).toMatchObject({ status: 401, body: { error: expect.stringContaining(`console --data ${data}\``) } });
  process.kill(pid, "SIGTERM");
  const ended = await end;
  expect(ended.err).toContain("/console/session");
  for (const secret of [oneTime, cookieOf(answer)])
    expect(ended.out + ended.err).not.toContain(secret.split(".").at(-1));
});

test("with --json it prints an object; a code works only for the run that it was made for", async () => {
  const data = folder();
  const first = await foreground(data);
  const { url: link } = JSON.parse((await command(["console", "--json", "--data", data])).out) as { url: string };
  expect(link).toMatch(new RegExp(`^${first.url}/#code=`));
  process.kill(first.pid, "SIGTERM");
  await first.end;
  const second = await foreground(data);
  expect((await signIn(second.url, { code: codeIn(link) })).status).toBe(401);
});

test("if no service is running, it says how to start one, with exit status 3", async () => {
  const data = folder();
  expect(await command(["console", "--data", data])).toEqual({
    code: 3,
    out: "",
    err: `machines-service: no service is running for ${data}; start it with \`npx machines-service start --detach --data ${data}\`\n`,
  });
});

test("start and status end with the console, and how to sign in", async () => {
  const data = folder();
  const started = await start(data);
  const [, url] = /ready at (\S+)/.exec(started.out) ?? [];
  const line = `console: ${url}/ (to sign in: npx machines-service console --data ${data})`;
  expect(started.out.trimEnd().split("\n").at(-1)).toBe(line);
  expect((await command(["status", "--data", data])).out).toBe(started.out);
});

test("with --console off there is no console", async () => {
  const data = folder();
  const { url, token } = await foreground(data, [], { MACHINES_SERVICE_CONSOLE: "off" });
  expect((await command(["status", "--data", data])).out).not.toContain("console");
  expect(JSON.parse((await command(["status", "--json", "--data", data])).out)).not.toHaveProperty("console");
  expect(await command(["console", "--data", data])).toEqual({
    code: 1,
    out: "",
    err: `machines-service: the service at ${url} has no console; stop it, and start it with --console read or --console write\n`,
  });
  const page = await send(url, "GET", "/", { headers: { accept: "text/html" } });
  expect(page.text).toContain("<code>npx machines-service token");
  expect((await signIn(url, { token }, { authorization: `Bearer ${token}` })).status).toBe(404);
});

test("with --console write the console operates Machines; in the background too", async () => {
  const data = folder();
  const started = await start(data, "--console", "write");
  const [, url = ""] = /ready at (\S+)/.exec(started.out) ?? [];
  const code = codeIn((await command(["console", "--data", data])).out);
  const visit = browser(url, sessionOf(await signIn(url, { code })));
  expect((await visit("GET", "/console/session")).body).toMatchObject({ canWrite: true });
});

test("another value of --console is refused", async () => {
  const { code, err } = await command(["start", "--data", folder(), "--console", "admin"]);
  expect([code, err]).toEqual([1, expect.stringContaining("Allowed choices are off, read, write.")]);
});

test.runIf(process.platform === "linux")("on a terminal it opens the browser, unless told not to", async () => {
  const data = folder();
  await foreground(data);
  const opened = join(data, "../opened");
  const bin = join(data, "../bin");
  mkdirSync(bin);
  // What xdg-open starts on a desktop that it does not know.
  writeFileSync(
    join(bin, "browser"),
    `#!/bin/sh\nprintf '%s' "$1" > '${opened}.new' && mv '${opened}.new' '${opened}'\n`,
    {
      mode: 0o755,
    },
  );
  const env = {
    ...process.env,
    BROWSER: join(bin, "browser"),
    DISPLAY: "",
    XDG_CURRENT_DESKTOP: "",
    DESKTOP_SESSION: "",
  };
  const program = [process.execPath, serviceMain, "console", "--data", data];
  const quiet = await onTerminal([...program, "--no-open"], [], { cwd: bin, env });
  expect([quiet.code, codeIn(quiet.shown)]).toEqual([0, expect.any(String)]);
  expect(existsSync(opened)).toBe(false);
  const { code, shown } = await onTerminal(program, [], { cwd: bin, env });
  expect([code, shown]).toEqual([0, expect.stringContaining("#code=")]);
  await vi.waitFor(() => expect(readFileSync(opened, "utf8")).toBe(shown.trim()), { timeout: hang });
});
