// The console in a browser, with a service in the test's own process. Every test ends with the same questions: did the page stay
// within its policy, and did it ask nobody but the service?
import axe, { type AxeResults } from "axe-core";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { expect, inject } from "vitest";
import type { Clock, ServiceOptions } from "../../service/index.ts";
import { caller } from "../service/client.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hang } from "../support/patience.mts";
import { startService, type TestService } from "../support/startService.ts";

/** Whether there is a browser. */
export const hasBrowser = inject("browser") !== undefined;

/** The size of a page without another one. */
export const screen = { width: 1360, height: 900 };

let browser: Promise<Browser> | undefined;

/** How the browser is, and how the service is started. */
interface Options {
  readonly service?: ServiceOptions;
  readonly browser?: BrowserContextOptions;
}

/** A service, and requests to it with its token. */
export async function withService<C extends Clock | undefined = undefined>(
  options: ServiceOptions & { clock?: C } = {},
) {
  const service = await startService(options);
  afterThisTest(() => service.close());
  return { ...service, call: caller(service.url, service.token) };
}

/** A page that is signed in with a one-time code. */
export async function withConsole({ service: options = {}, browser: more = {} }: Options = {}) {
  const service = await withService(options);
  const page = await openPage(service, more);
  await signIn(page, service);
  return { ...service, page };
}

/** Chromium drops what it loads when an interface of the computer appears, as those of the containers of other tests do. */
const networkChanged = "net::ERR_NETWORK_CHANGED";

/** Loads the page again when it could not load a part of itself. What the page reads it reads again by itself. */
function loadAgainAfterNetworkChanges(page: Page): void {
  const load = page.goto.bind(page);
  const goto: Page["goto"] = async (...args) => {
    try {
      return await load(...args);
    } catch (error) {
      if (!String(error).includes(networkChanged)) throw error;
      return goto(...args);
    }
  };
  Object.assign(page, { goto });
  page.on("requestfailed", (request) => {
    const isPart = request.resourceType() === "script" || request.resourceType() === "stylesheet";
    if (isPart && request.failure()?.errorText === networkChanged) void page.reload().catch(() => {});
  });
}

/** A page that is not signed in yet. */
export async function openPage({ url }: Pick<TestService, "url">, options: BrowserContextOptions = {}): Promise<Page> {
  browser ??= chromium.connect(inject("browser") ?? "");
  const context = await (await browser).newContext({ viewport: screen, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(hang);
  const problems: string[] = [];
  page.on("console", (message) => {
    // Others come from the tools of the tests, or are about answers that are no success, which some tests want.
    const isOurs = message.type() === "error" && message.location().url.includes("/console/assets/");
    // Some tests stop the service.
    const isExpected =
      message.text().endsWith("net::ERR_CONNECTION_REFUSED") || message.text().endsWith(networkChanged);
    if (isOurs && !isExpected) problems.push(message.text());
  });
  loadAgainAfterNetworkChanges(page);
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(url).origin && protocol !== "data:") problems.push(`a request to ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    problems.push(`a dialog of the browser: ${dialog.message()}`);
    void dialog.dismiss();
  });
  afterThisTest(async () => {
    await context.close();
    expect(problems).toEqual([]);
  });
  return page;
}

/** Signs in with a code of the service. */
export async function signIn(
  page: Page,
  { url, service }: Pick<TestService, "url" | "service">,
  path = "/",
): Promise<void> {
  await page.goto(`${url}${path}#code=${service.consoleCode()}`);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** Signs in with a token, in the form that the page shows. */
export async function signInWith(page: Page, token: string): Promise<void> {
  await page.getByLabel("Or paste an access token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** Waits until changes arrive. */
export const live = (page: Page): Promise<void> => page.getByRole("banner").getByText("live").waitFor();

/** What axe finds on the page as it is now, as sentences. */
export async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  // The policy of the page forbids scripts from elsewhere; this one comes through the debugger of the browser.
  await page.evaluate(axe.source);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  // As text, because the types of a page are not those of this process.
  const options = JSON.stringify({ runOnly: tags, resultTypes: ["violations"] });
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${options})`);
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 150)}`));
}
