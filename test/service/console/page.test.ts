// The page of the console and its files, and what answers at the paths around them.
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { builtFile } from "../../../service/console/built.ts";
import { withApp } from "../client.ts";
import { page, send } from "./browser.ts";

const browserAccepts = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

/** The bytes of an answer, as they were sent. */
const bytesOf = (url: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  new Promise<{ status: number; headers: Readonly<Record<string, unknown>>; bytes: Buffer }>((resolve, reject) => {
    const sent = request(url, { path, headers }, (response) => {
      const parts: Buffer[] = [];
      response
        .on("data", (part: Buffer) => parts.push(part))
        .once("end", () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(parts) });
        });
    });
    sent.once("error", reject).end();
  });

test.each(["/", "/console", "/console/", "/console/apps/web", "/console/apps/web/machines/none?tab=logs"])(
  "%s is the page, which loads nothing from elsewhere and cannot be framed",
  async (path) => {
    const { url } = await withApp();
    const { status, headers, text } = await send(url, "GET", path, { headers: browserAccepts });
    expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
      200,
      "text/html; charset=utf-8",
      "no-cache",
    ]);
    const policy = new Map(
      (headers.get("content-security-policy") ?? "").split("; ").map((one) => {
        const [name = "", ...values] = one.split(" ");
        return [name, values.join(" ")] as const;
      }),
    );
    expect(Object.fromEntries(policy)).toMatchObject({
      ...{ "default-src": "'none'", "script-src": "'self'", "connect-src": "'self'", "frame-ancestors": "'none'" },
      ...{ "base-uri": "'none'", "form-action": "'none'" },
    });
    expect(headers.get("content-security-policy")).not.toMatch(/unsafe|https?:|\*/);
    expect([headers.get("x-content-type-options"), headers.get("referrer-policy")]).toEqual(["nosniff", "no-referrer"]);
    // The policy would refuse scripts and styles within the page.
    expect(text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/);
    const files = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = ""]) => file);
    expect(files.length).toBeGreaterThanOrEqual(3);
    for (const file of files) expect([file, (await send(url, "GET", file)).status]).toEqual([file, 200]);
  },
);

test("files need no session, have a tag, and are compressed for those who can read that", async () => {
  const { url } = await withApp();
  const path = "/console/assets/app.js";
  const plain = await bytesOf(url, path);
  const whole = readFileSync(builtFile("page/app.js") ?? "");
  expect(plain.bytes.equals(whole)).toBe(true);
  expect(plain.headers).toMatchObject({
    ...{ "content-type": "text/javascript; charset=utf-8", "cache-control": "no-cache", vary: "accept-encoding" },
    ...{ "x-content-type-options": "nosniff", etag: expect.stringMatching(/^"[0-9a-f]{16}"$/) },
  });
  expect(plain.headers).not.toHaveProperty("content-encoding");
  const small = await bytesOf(url, path, { "accept-encoding": "br, gzip;q=0.8" });
  expect([small.headers["content-encoding"], small.headers["etag"]]).toEqual(["gzip", plain.headers["etag"]]);
  expect(small.bytes.length).toBeLessThan(whole.length / 2);
  expect(gunzipSync(small.bytes).equals(whole)).toBe(true);
  const refused = await bytesOf(url, path, { "accept-encoding": "gzip;q=0" });
  expect(refused.headers).not.toHaveProperty("content-encoding");
  const again = await bytesOf(url, path, { "if-none-match": String(plain.headers["etag"]) });
  expect([again.status, again.bytes.length, again.headers["etag"]]).toEqual([304, 0, plain.headers["etag"]]);
  const weak = await bytesOf(url, path, { "if-none-match": `"other", W/${String(plain.headers["etag"])}` });
  expect(weak.status).toBe(304);
  const other = await bytesOf(url, path, { "if-none-match": '"0000000000000000"' });
  expect([other.status, other.bytes.equals(whole)]).toEqual([200, true]);
});

test.each([
  "none.js",
  "app.js.map",
  "code.js",
  ".js",
  "../code.js",
  "..%2fcode.js",
  "..%2f..%2fservice%2fmain.js",
  "%2e%2e%2f%2e%2e%2fpackage.json",
  "..%5c..%5ccode.js",
  "/etc/passwd",
  "%2fetc%2fpasswd.js",
  "app.js%00.css",
  "page/app.js",
  "constructor",
  "__proto__.js",
])("the file %s is 404", async (file) => {
  const { url } = await withApp();
  // `fetch` would tidy the path.
  const { status, bytes } = await bytesOf(url, `/console/assets/${file}`);
  expect([file, status, bytes.length < 100]).toEqual([file, 404, true]);
});

test("clients that do not name HTML get the same at / as before", async () => {
  const { url } = await withApp();
  const withConsole = await Promise.all(
    [{}, { accept: "*/*" }, { accept: "application/json" }, { accept: "application/json, text/html;q=0.5" }].map(
      (headers) => send(url, "GET", "/", { headers }),
    ),
  );
  const { url: other } = await withApp({ console: "off" });
  const without = await send(other, "GET", "/");
  for (const { status, headers, text } of withConsole) {
    expect([status, headers.get("vary"), text]).toEqual([200, "accept", without.text]);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
  }
});

test("with --console off there is the previous first page, and nothing of the console", async () => {
  const { url, token } = await withApp({ console: "off" });
  const authorization = `Bearer ${token}`;
  const first = await send(url, "GET", "/", { headers: browserAccepts });
  expect(first.text).toContain("/docs");
  expect(first.text).not.toContain("/console");
  for (const path of [
    "",
    "/apps/web",
    "/assets/app.js",
    "/api/overview",
    "/events?topics=org",
    "/session",
    "/api/code",
  ])
    expect([path, (await send(url, "GET", `/console${path}`, { headers: { authorization } })).status]).toEqual([
      path,
      404,
    ]);
  expect((await send(url, "POST", "/console/session", { headers: { authorization } })).status).toBe(404);
});

test.each([
  ["POST", "/console", "GET"],
  ["DELETE", "/console/apps/web", "GET"],
  ["PUT", "/console/session", "POST, GET, DELETE"],
  ["POST", "/console/api/overview", "GET"],
  ["PATCH", "/console/api/faults", "GET, POST"],
  ["POST", "/console/events", "GET"],
  ["DELETE", "/console/assets/app.js", "GET"],
])("%s %s is 405, and names what is allowed", async (method, path, allow) => {
  const started = await withApp();
  const visit = await page(started);
  const { status, headers, body } = await visit(method, path);
  expect([status, headers.get("allow")]).toEqual([405, allow]);
  expect(body.error).toBe(`${method} is not allowed here, allowed are ${allow}`);
});

test("what is no view of the console is 404 in words, not the page", async () => {
  const visit = await page(await withApp());
  for (const path of ["/console/api", "/console/api/", "/console/api/none", "/console/api/apps", "/console/assets/a/b"])
    expect([path, (await visit("GET", path)).body]).toEqual([path, { error: expect.stringMatching(/^no such/) }]);
});

test("the console is no part of the description of the interface", async () => {
  const { url } = await withApp();
  const { paths } = (await send(url, "GET", "/openapi.json")).body;
  expect(Object.keys(paths).filter((path) => path.includes("console"))).toEqual([]);
});
