// The pages of the service for people: the first one, and the one with every operation.
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { get } from "node:http";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { describe, expect, test, vi } from "vitest";
import { createService } from "../../service/index.ts";
import { ownCommand, usualFolder } from "../../service/ownCommand.ts";
import { docsPage } from "../../service/openapi/docsPage.ts";
import { version } from "../../service/version.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startService } from "../support/startService.ts";
import { withApp } from "./client.ts";
import { folder } from "./command.ts";
import { document, rows } from "./description.ts";

const unescaped = (html: string): string =>
  html.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");

/** The page with every operation, its policy, and the only script on it. */
async function docs(url: string) {
  const response = await fetch(`${url}/docs`);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const page = await response.text();
  const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)].map(([, script = ""]) => script);
  expect(scripts).toHaveLength(1);
  return { page, policy: response.headers.get("content-security-policy") ?? "", script: scripts[0] ?? "" };
}

describe("/docs", () => {
  test("the page /docs names and sums up every operation, and loads nothing", async () => {
    const { url } = await withApp();
    const { page } = await docs(url);
    for (const row of rows) {
      expect(page).toContain(`id="${row.id}"`);
      expect(page).toContain(`<code>${row.path}</code>`);
      const [, summary = ""] =
        new RegExp(`<details id="${row.id}"><summary>.*?<span>(.*?)</span></summary>`).exec(page) ?? [];
      expect(unescaped(summary).replaceAll(/<\/?code>/g, "`"), row.id).toBe(row.summary);
    }
    expect(page).not.toMatch(/<script [^>]|<link|<img|src=|@import|url\(/);
    const hosts = [...page.matchAll(/https?:\/\/[^/'"<\s]+/g)].map(([host]) => host);
    expect(new Set(hosts)).toEqual(new Set([url]));
    const anchors = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const targets = [...page.matchAll(/href="#([^"]+)"/g)].map(([, target]) => target);
    expect(targets.filter((target) => !anchors.has(target))).toEqual([]);
  });

  test("its policy allows its own script and no other, and no request", async () => {
    const { url } = await withApp();
    const { policy, script } = await docs(url);
    const own = `script-src 'sha256-${hash("sha256", script, "base64")}'`;
    expect(policy.split("; ")).toEqual([
      ...["default-src 'none'", "style-src 'unsafe-inline'", own],
      ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
    ]);
    expect(script).not.toMatch(/fetch|XMLHttpRequest|import|eval|innerHTML|src/);
  });

  test("what stands in the description is text on the page", () => {
    const page = docsPage({ ...document, tags: [{ name: "apps", description: '<b>"&`<i>`' }] })(
      "http://localhost",
      undefined,
    );
    expect(page).toContain("&lt;b&gt;&quot;&amp;<code>&lt;i&gt;</code>");
  });

  test("a host name that is none is not repeated", async () => {
    const { url } = await withApp({ allowHosts: "any" });
    const asked = (host: string): Promise<string> =>
      new Promise((resolve, reject) => {
        get(`${url}/docs`, { headers: { host } }, (response) => {
          let text = "";
          response.on("data", (part: Buffer) => (text += part.toString())).once("end", () => resolve(text));
        }).once("error", reject);
      });
    expect(await asked("machines.example:8443")).toContain("curl 'http://machines.example:8443/v1/platform/regions'");
    const page = await asked("a';x<b>");
    expect(page).toContain("curl 'http://localhost/v1/platform/regions'");
    expect(page).not.toContain("a';x");
  });
});

describe("the command that prints a token", () => {
  /** The line of the shell on the page with every operation, and the first page. */
  async function pages(data: string, remoteAddress = "127.0.0.1") {
    const service = createService({ data, console: "off" });
    afterThisTest(() => service.close());
    const asked = async (url: string) =>
      unescaped((await service.app.inject({ url, remoteAddress, headers: { accept: "text/html" } })).body);
    return { line: /<pre>(TOKEN=.*)<\/pre>/.exec(await asked("/docs"))?.[1], first: await asked("/") };
  }

  test("the command that prints a token names the data folder, as one word of a shell", async () => {
    const data = join(folder(), "it's <mine>");
    const { line, first } = await pages(data);
    const option = `--data '${data.replace("'", `'\\''`)}'`;
    expect(line).toBe(`TOKEN=$(npx machines-service token ${option})`);
    expect(first).toContain(`which <code>npx machines-service token ${option}</code> prints`);
    expect(first).toContain(`<code>npx machines-service ls ${option}</code>`);
  });

  test("the command that prints a token is as the scripts of a clone call it", async () => {
    vi.stubEnv("MACHINES_SERVICE_COMMAND", "npm run -s service --");
    afterThisTest(() => void vi.unstubAllEnvs());
    const data = folder();
    expect((await pages(data)).line).toBe(`TOKEN=$(npm run -s service -- token --data ${data})`);
  });

  test("the command that prints a token is for readers on the same computer, if the service has a data folder", async () => {
    const data = folder();
    for (const { line, first } of [await pages(data, "192.0.2.1"), await pages(":memory:")]) {
      expect(line).toBe("TOKEN=…");
      expect(first).toContain("Requests need an access token.</p>");
      expect(first).not.toContain(data);
    }
  });

  test("the command that prints a token leaves out the usual data folder", () => {
    vi.stubEnv("MACHINES_SERVICE_DATA", "");
    afterThisTest(() => void vi.unstubAllEnvs());
    expect(ownCommand("token", usualFolder())).toBe("npx machines-service token");
  });
});

/** The arguments of every command on the page, by operation, as a shell reads them. */
function commandsOn(page: string): Map<string, readonly string[]> {
  const entries = [...page.matchAll(/<details id="([\w.]+)"><summary><b>.*?<pre>(curl .*?)<\/pre>/gs)];
  const script = entries.map(([, id = "", text = ""]) => `printf '\\1%s' ${id}\n${unescaped(text)}\n`).join("");
  const printed = execFileSync("sh", ["-s"], {
    input: `curl() { printf '\\2%s' "$@"; }\nTOKEN=the-token NONCE=the-nonce\n${script}`,
    encoding: "utf8",
  });
  return new Map(
    printed
      .split("\u0001")
      .slice(1)
      .map((one) => {
        const [id = "", ...args] = one.split("\u0002");
        return [id, args] as const;
      }),
  );
}

/** A request as curl would send it. */
function requestOf(args: readonly string[]) {
  const [request, headers]: [{ method?: string; url?: string; body?: string }, Record<string, string>] = [{}, {}];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    const next = args[i + 1] ?? "";
    if (arg === "-X") request.method = next;
    else if (arg === "-d") request.body = next;
    else if (arg === "-H") headers[(next.split(": ")[0] ?? "").toLowerCase()] = next.split(": ")[1] ?? "";
    else request.url = arg;
    if (arg.startsWith("-")) i++;
  }
  return { method: "GET", url: "", ...request, headers };
}

test("the command of every operation is one that the operation accepts", async () => {
  const { url, token, service, close } = await startService();
  afterThisTest(close);
  const commands = commandsOn((await docs(url)).page);
  expect([...commands.keys()].filter((id) => !id.startsWith("service."))).toEqual(rows.map(({ id }) => id));
  for (const row of rows) {
    const { method, url: address, body, headers } = requestOf(commands.get(row.id) ?? []);
    expect(headers["authorization"], row.id).toBe("Bearer the-token");
    expect(body !== undefined, row.id).toBe(row.body !== undefined && row.bodyOptional !== true);
    const answer = await fetch(address, {
      method,
      headers: { ...headers, authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body }),
    });
    expect(service.audit.after(service.audit.last - 1)[0]?.operation).toBe(row.id);
    // The objects that the examples name do not exist, which is not examined before the request is valid.
    const text = await answer.text();
    expect([200, 201, 202, 204, 404], `${row.id} ${answer.status} ${text}`).toContain(answer.status);
    expect(text).not.toContain("no such route");
  }
  expect(requestOf(commands.get("service.health") ?? [])).toEqual({
    method: "GET",
    url: `${url}/healthz`,
    headers: {},
  });
});

/** The parts of a browser's page that the script uses, made from the page. */
function browser(page: string, script: string, hash = "") {
  const element = (id: string, text: string) => ({
    ...{ id, tagName: "DETAILS", hidden: false, open: false, scrolled: false },
    querySelector: () => ({ textContent: text }),
    scrollIntoView() {
      this.scrolled = true;
    },
  });
  const sections = [...page.matchAll(/<section>.*?<\/section>/gs)].map(([section]) => {
    const entries = [...section.matchAll(/<details id="([\w.]+)"><summary>(.*?)<\/summary>/gs)].map(
      ([, id = "", summary = ""]) => element(id, unescaped(summary.replaceAll(/<[^>]+>/g, ""))),
    );
    return { entries, hidden: false, querySelector: () => entries.find(({ hidden }) => !hidden) ?? null };
  });
  const details = sections.flatMap(({ entries }) => entries);
  const listeners: Record<string, () => void> = {};
  const listen = (event: string, listener: () => void): void => void (listeners[event] = listener);
  const box = { value: "", parentElement: { hidden: true }, addEventListener: listen };
  const found = { textContent: "" };
  const location = { hash };
  const byId = (id: string) => ({ search: box, found })[id] ?? details.find((one) => one.id === id) ?? null;
  const all = (selector: string) => (selector === "details" ? details : sections);
  runInNewContext(script, {
    document: { getElementById: byId, querySelectorAll: all },
    addEventListener: listen,
    location,
  });
  return {
    ...{ box, found, sections, details },
    type(text: string): string[] {
      box.value = text;
      listeners["input"]?.();
      return details.filter(({ hidden }) => !hidden).map(({ id }) => id);
    },
    go(to: string): void {
      location.hash = to;
      listeners["hashchange"]?.();
    },
  };
}

test("the search shows what has every word, and a link opens its operation", async () => {
  const { url } = await withApp();
  const { page, script } = await docs(url);
  const { box, found, sections, details, type, go } = browser(page, script, "#apps.list");
  expect(box.parentElement.hidden, "without scripts there is no search").toBe(false);
  expect(details.filter(({ open }) => open).map(({ id }) => id)).toEqual(["apps.list"]);
  expect(details.length).toBeGreaterThan(rows.length);
  expect(type("Forked VOLUME")).toEqual(["volumes.create"]);
  expect(found.textContent).toBe(`1 of ${details.length}`);
  expect(sections.filter(({ hidden }) => !hidden)).toHaveLength(1);
  expect(type("/v1/platform")).toEqual(["platform.regions", "platform.placements"]);
  expect(type("no such thing")).toEqual([]);
  go("#machines.create");
  expect(details.find(({ id }) => id === "machines.create")).toMatchObject({
    open: true,
    hidden: false,
    scrolled: true,
  });
  expect(box.value).toBe("");
  expect(type("")).toHaveLength(details.length);
  expect(found.textContent).toBe("");
});

describe("/", () => {
  const links = {
    ...{ docs: "/docs", openapi: "/openapi.json" },
    ...{ healthz: "/healthz", readyz: "/readyz", metrics: "/metrics" },
  };
  const ask = async (url: string, accept?: string) => {
    const response = await fetch(url, accept === undefined ? {} : { headers: { accept } });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  test("without a console, a browser gets a page that leads to the others", async () => {
    const { url, token } = await withApp({ console: "off" });
    const { status, headers, text } = await ask(url, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("content-security-policy")).not.toContain("script-src");
    expect(text).toContain(`machines-service ${version}`);
    const targets = [...text.matchAll(/href="([^"]+)"/g)].map(([, target = ""]) => target);
    expect(targets).toEqual(Object.values(links));
    for (const target of targets) {
      const answer = await fetch(url + target, { headers: { authorization: `Bearer ${token}` } });
      expect(answer.status, target).toBe(200);
    }
    expect(text).not.toMatch(/<script|<link|<img|src=|https?:/);
  });

  test.each([undefined, "application/json", "*/*", "text/html;q=0.5, application/json", "text/html;q=0"])(
    "with Accept %j it is JSON",
    async (accept) => {
      const { url } = await withApp();
      const { status, headers, text } = await ask(url, accept);
      expect([status, headers.get("content-type"), headers.get("vary")]).toEqual([
        ...[200, "application/json; charset=utf-8", "accept"],
      ]);
      expect(JSON.parse(text)).toEqual({
        ...{ name: "machines-service", version, description: "A self-hosted Machines Control Service.", links },
      });
    },
  );

  test("another method is 405", async () => {
    const { url, token } = await withApp();
    const answer = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET"]);
  });
});
