// Texts that attack a page, wherever the interface accepts text: each is shown as it is, and does nothing.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { oneLine } from "../../api/printable.ts";
import type { Call } from "../service/client.ts";
import { hasBrowser, openPage, signIn, withService } from "./page.ts";

const canaries = [
  "<img src=x onerror=alert(1)>",
  `"><script>alert(2)</script>`,
  "</title></style></textarea><svg/onload=alert(3)>",
  `' onmouseover='alert(4)' autofocus onfocus='alert(5)`,
  "javascript:alert(6)",
  "${{7*7}} {{7*7}} ${alert(7)} `${8}` %{9}",
  "\u202Egnp.exe\u202C\u2066hidden\u2069",
  "👩‍👩‍👧‍👦 𝓗 ﷽ e\u0301\u0301\u0301",
  "\u001B[31mred\u001B[0m\u001B]8;;javascript:alert(8)\u0007link\u001B]8;;\u0007",
  "__proto__",
  "W".repeat(1000),
] as const;

/** A text as a page shows it: the end of a long one may be elsewhere on the screen. */
const shown = (page: Pick<Page, "getByText">, text: string) => page.getByText(text).filter({ visible: true }).first();

/** What would be wrong with the page that is shown. */
const wrongs = (page: Page) =>
  page.evaluate<readonly string[]>(`[...document.querySelectorAll("*")].flatMap((it) => [
    ...(["SCRIPT", "IFRAME", "OBJECT", "EMBED", "BASE", "FORM"].includes(it.tagName) &&
    !it.matches('script[src="/console/assets/app.js"], form:not([action])') ? [it.outerHTML] : []),
    ...(it.tagName === "IMG" && !it.matches('[src="/console/assets/icon.svg"]') ? [it.outerHTML] : []),
    ...["href", "src", "action", "formaction", "xlink:href"].flatMap((name) =>
      it.hasAttribute(name) && !/^https?:$/.test(new URL(it.getAttribute(name), location.href).protocol) ? [it.outerHTML] : []),
    ...[...it.attributes].filter(({ name }) => name.startsWith("on") || name === "style" && /url|expression/.test(it.style.cssText)).map(({ name }) => name),
  ])`);

/** Objects with the canaries, as far as the interface takes them. */
async function poison(call: Call) {
  const accepted: string[] = [];
  const attempt = async (what: string, ...args: Parameters<Call>) => {
    const answer = await call(...args);
    if (answer.status < 300) accepted.push(what);
    return answer;
  };
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const cluster = { name: "db", region: "ams", plan: "basic", org_slug: "personal" };
  const { id } = (await call("POST", "/postgres", cluster)).body.data;
  const ids: string[] = [];
  for (const [i, text] of canaries.entries()) {
    const name = `m-${i}`;
    const config = {
      image: "nginx",
      env: { CANARY: text },
      metadata: { "pulumi-fleet": text, "pulumi-fleet-phase": text, [text]: text },
      checks: { [text]: { type: "tcp", port: 8080 } },
      init: { cmd: ["serve", text] },
      services: [{ protocol: "tcp", internal_port: 8080 }],
    };
    const made = await attempt("machine", "POST", "/apps/web/machines", { name, config });
    if (made.status < 300) {
      ids.push(made.body.id);
      await call("POST", `/apps/web/machines/${made.body.id}`, { config: { ...config, env: { CANARY: `${text}!` } } });
      await attempt("lease", "POST", `/apps/web/machines/${made.body.id}/lease`, { description: text, ttl: 300 });
    }
    const urn = { "pulumi-urn": encodeURIComponent(`urn:pulumi:${text}::${text}::a:b:${text}::${text}`) };
    await call("GET", `/apps/web/${encodeURIComponent(text).slice(0, 150)}`, undefined, urn);
    await attempt("app", "POST", "/apps", { name: text, org_slug: "personal" });
    await attempt("network", "POST", "/apps", { name: `app-${i}`, org_slug: "personal", network: text });
    await attempt("machine name", "POST", "/apps/web/machines", { name: text, config: { image: "nginx" } });
    await attempt("image", "POST", "/apps/web/machines", { config: { image: text } });
    await attempt("volume", "POST", "/apps/web/volumes", { name: text, region: "ams" });
    await attempt("address", "POST", "/apps/web/ip_assignments", { type: "v6", service_name: text });
    await attempt("hostname", "POST", "/apps/web/certificates/acme", { hostname: text });
    await attempt("secret", "POST", `/apps/web/secrets/${encodeURIComponent(text)}`, { value: text });
    await attempt("key", "POST", `/apps/web/secretkeys/${encodeURIComponent(text)}/generate`, { type: "hs256" });
    await attempt("cluster", "POST", "/postgres", { ...cluster, name: text });
    await attempt("database", "POST", `/postgres/${id}/databases`, { name: text });
    await attempt("user", "POST", `/postgres/${id}/users`, { username: text, role: "reader" });
  }
  return { ids, cluster: String(id), accepted: new Set(accepted) };
}

describe.runIf(hasBrowser)("hostile texts", () => {
  test("hostile texts are shown as text in every view, without a script, a link or a request", async () => {
    const service = await withService({ console: "write", strict: false });
    service.service.faults.isOpen = true;
    const { ids, cluster, accepted } = await poison(service.call);
    // The others are refused for what they are: their names are restricted.
    expect([...accepted]).toEqual(expect.arrayContaining(["machine", "lease", "network"]));
    service.service.faults.add({ path: canaries[0], status: 503, times: "always" });
    const page = await openPage(service);
    await signIn(page, service);
    const visit = async (path: string, ...texts: readonly string[]) => {
      await page.goto(service.url + path);
      for (const text of texts) await shown(page, text).waitFor();
      expect(await wrongs(page)).toEqual([]);
    };
    await visit("/", "app-10");
    await visit("/console/apps/app-0", canaries[0]);
    await visit("/console/apps/web?view=machines", "m-0");
    await visit("/console/apps/web?view=rollouts", ...canaries.map((text) => `Fleet ${text}`), ...canaries);
    for (const part of ["volumes", "network", "secrets", "logs"]) await visit(`/console/apps/web?view=${part}`, "web");
    for (const [i, id] of ids.entries()) {
      const text = canaries[i] ?? "";
      await visit(`/console/apps/web/machines/${id}`, `m-${i}`, text);
      await shown(page.locator("dd"), text).waitFor();
      await page.getByRole("button", { name: "Versions 2" }).click();
      await shown(page, `"CANARY": ${JSON.stringify(text)}`).waitFor();
      expect(await wrongs(page)).toEqual([]);
    }
    await visit(`/console/apps/web/machines/${ids[0]}?view=inside`, `serve ${canaries[0]}`);
    await visit(`/console/clusters/${cluster}`, "db");
    await visit("/console/faults", JSON.stringify(canaries[0]));
    await visit(`/console/requests?by=${encodeURIComponent(canaries[0])}`, `of ${canaries[0]}/${canaries[0]}`);
    // The log has one line for each request, so it escapes what could leave the line.
    await visit("/console/requests", ...canaries.slice(0, 10).map(oneLine));
    await page.goto(`${service.url}/console/apps/web`);
    await page.getByRole("button", { name: "All of it as code" }).click();
    await shown(page, "onerror=alert(1)").waitFor();
    expect(await wrongs(page)).toEqual([]);
  });

  test("in an address name nothing, and do nothing", async () => {
    const service = await withService();
    const page = await openPage(service);
    await signIn(page, service);
    for (const text of canaries) {
      const part = encodeURIComponent(text);
      for (const path of [
        `/console/apps/${part}/machines/${part}?view=${part}&from=${part}`,
        `/console/requests?text=${part}&by=${part}&status=${part}#${part}`,
      ]) {
        await page.goto(service.url + path);
        await page.getByRole("main").getByRole("heading").first().waitFor();
        expect(await wrongs(page)).toEqual([]);
      }
    }
    await page.goto(service.url);
    await page.evaluate(
      "history.pushState(null, '', '/console/apps/%E0%A4%A'); dispatchEvent(new PopStateEvent('popstate'))",
    );
    await page.getByRole("main").getByRole("heading", { name: "%E0%A4%A" }).waitFor();
  });

  test("could not run a script or load anything: the policy of the page allows only its own files", async () => {
    const { url } = await withService();
    for (const path of ["/", "/console", "/console/apps/web", "/console/nothing"]) {
      const { headers } = await fetch(url + path, { headers: { accept: "text/html" } });
      expect(headers.get("content-security-policy")?.split("; ")).toEqual([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ]);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
    }
  });
});
