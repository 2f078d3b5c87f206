// Clusters in the console, on a real server: the address to connect with, changes, tables and queries.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { findBinaries } from "../../service/runtime/postgres/binaries.ts";
import { embeddedPostgres } from "../../service/runtime/postgres/index.ts";
import { dataFolder, requestsOfClusters } from "../service/postgres/servers.ts";
import { accessibilityProblems, hasBrowser, live, openPage, signIn, withService } from "./page.ts";

const dialog = (page: Page) => page.getByRole("dialog");

/** A cluster with a table of 250 orders and one of odd values, and its page. */
async function withCluster(console: "read" | "write" = "write") {
  const data = dataFolder();
  const versions = new Map([...(await findBinaries())].filter(([version]) => version === "18"));
  const service = await withService({ console, data, postgres: await embeddedPostgres({ data, versions }) });
  const clusters = requestsOfClusters(service.call);
  const ready = await clusters.cluster({ name: "orders-db" });
  const owner = await clusters.connect(ready);
  await owner.query(`CREATE TABLE orders (id int PRIMARY KEY, customer text NOT NULL, note text);
    INSERT INTO orders SELECT n, 'customer ' || n, CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE repeat('long ', 100) END
      FROM generate_series(1, 250) AS n;
    CREATE INDEX by_customer ON orders (customer);
    CREATE TABLE "<img src=x onerror=alert(1)>" ("<b>""'" text);
    INSERT INTO "<img src=x onerror=alert(1)>" VALUES ('<script>alert(2)</script>');
    CREATE VIEW customers AS SELECT DISTINCT customer FROM orders;
    ANALYZE orders`);
  return { ...service, ...clusters, ready, owner, path: `/console/clusters/${ready.id}` };
}

async function open(service: Awaited<ReturnType<typeof withCluster>>, query = "", options = {}): Promise<Page> {
  const page = await openPage(service, options);
  await signIn(page, service, `${service.path}${query}`);
  await page.getByRole("heading", { name: "orders-db" }).waitFor();
  await live(page);
  return page;
}

/** What was copied last. */
const copied = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");

const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };

/** Types a query into the editor in the place of the one there. */
async function typeQuery(page: Page, sql: string): Promise<void> {
  await page.getByRole("textbox", { name: "Query" }).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(sql);
}

/** Runs a query with the keyboard, and waits for what it says. */
async function ask(page: Page, sql: string, said: string | RegExp): Promise<void> {
  await typeQuery(page, sql);
  await page.keyboard.press("Control+Enter");
  await page.getByText(said).first().waitFor();
}

const cells = (page: Page, label: string) =>
  page.getByRole("group", { name: label }).getByRole("cell").allTextContents();

describe.runIf(hasBrowser)("clusters in the console", () => {
  test("the address to connect with hides its password until it is copied, which the audit shows", async () => {
    const service = await withCluster();
    const { ready, service: inside, get } = service;
    const { port } = ready.endpoints.primary.direct;
    await service.call("POST", `/postgres/${ready.id}/users`, { username: "app", role: "reader" });
    const page = await open(service, "", clipboard);
    const shown = page.getByLabel("Address to connect with");
    await expect.poll(() => shown.textContent()).toBe(`postgresql://fly-user:••••••••@127.0.0.1:${port}/fly-db`);
    await page.getByRole("combobox", { name: "User" }).selectOption("app");
    const { password } = await get(`/postgres/${ready.id}/users/app/credentials`);
    expect(await page.content()).not.toContain(password);
    await page.getByRole("button", { name: "Copy the address with the password" }).click();
    await expect
      .poll(() => copied(page))
      .toBe(`postgresql://app:${encodeURIComponent(password)}@127.0.0.1:${port}/fly-db`);
    expect(await page.content()).not.toContain(password);
    const revealed = inside.audit.after(0).filter(({ operation }) => operation === "console.revealPassword");
    expect(revealed.map(({ path, status }) => [path.split("/").at(-2), status])).toEqual([["app", 200]]);
    await page.getByRole("button", { name: "Copy command of psql" }).click();
    await expect.poll(() => copied(page)).toBe(`psql 'postgresql://app@127.0.0.1:${port}/fly-db'`);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(`${service.url}/console/requests`);
    const row = page.getByRole("row").filter({ hasText: "/users/app/reveal" });
    // The name of the token, with its id for those who need it.
    await expect.poll(() => row.getByTitle(/^token [0-9a-f]{12}$/).textContent()).toBe("token first");
  });

  test("databases, users and backups are changed by buttons, which name the stack that may declare them", async () => {
    const service = await withCluster();
    const { ready, call, get } = service;
    const urn = "urn:pulumi:prod::shop::machines:index:PostgresDatabase::orders";
    await call("GET", `/postgres/${ready.id}/databases`, undefined, { "pulumi-urn": urn });
    const page = await open(service, "", clipboard);
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const confirm = (name: string) => dialog(page).getByRole("button", { name, exact: true });
    const closed = () => dialog(page).waitFor({ state: "hidden" });
    const names = async (path: string, member: string) =>
      (await get(`/postgres/${ready.id}/${path}`)).map((one: Record<string, string>) => one[member]);

    await button("Create database").click();
    await dialog(page).getByLabel("Name").fill("postgres");
    await confirm("Create database").click();
    await dialog(page).getByRole("alert").getByText('the database name "postgres" is reserved').waitFor();
    await dialog(page).getByLabel("Name").fill("reports");
    await confirm("Create database").click();
    await closed();
    await page
      .getByRole("row", { name: /^reports/ })
      .first()
      .waitFor();
    await button("Delete database reports").click();
    await dialog(page).getByText("If the program of shop/prod declares it, the next update creates it again").waitFor();
    expect(await confirm("Delete database reports").isDisabled()).toBe(true);
    await dialog(page).getByRole("textbox").fill("reports");
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await closed();
    await expect.poll(() => names("databases", "name")).toEqual(["fly-db"]);

    await button("Create user").click();
    await dialog(page).getByLabel("Name").fill("app");
    await dialog(page).getByLabel("Role").selectOption("writer");
    await confirm("Create user").click();
    await closed();
    await button("Change role of app").click();
    await dialog(page).getByLabel("Role").selectOption("reader");
    await confirm("Change role of app").click();
    await closed();
    expect(await get(`/postgres/${ready.id}/users`)).toContainEqual({ username: "app", role: "reader" });
    const before = (await get(`/postgres/${ready.id}/users/app/credentials`)).password;
    await button("Rotate password of app").click();
    await dialog(page).getByLabel("End its connections").check();
    await confirm("Rotate password of app").click();
    const { password } = await get(`/postgres/${ready.id}/users/app/credentials`);
    expect(password).not.toBe(before);
    await dialog(page).getByText(password).waitFor();
    await page.keyboard.press("Escape");
    await button("Delete user app").click();
    await dialog(page).getByRole("textbox").fill("app");
    await confirm("Delete user app").click();
    await closed();
    expect(await names("users", "username")).toEqual(["fly-user"]);
    // The first one is the platform's.
    expect(await page.getByRole("button", { name: "Delete user fly-user" }).count()).toBe(0);

    await button("Take a backup").click();
    await confirm("Take a backup").click();
    await closed();
    await page.getByRole("cell", { name: "completed" }).waitFor();
    await page.getByRole("button", { name: /^Restore backup/ }).click();
    await dialog(page).getByLabel("Name of the new cluster").fill("orders-again");
    await dialog(page)
      .getByRole("button", { name: /^Restore backup/ })
      .click();
    await dialog(page).getByRole("link", { name: "orders-again" }).click();
    await page.getByRole("heading", { name: "orders-again" }).waitFor();
    await page.getByLabel("Address to connect with").waitFor();
    const all = (await call("GET", "/postgres?org_slug=personal")).body.data;
    expect(all.map(({ name }: { name: string }) => name)).toEqual(["orders-db", "orders-again"]);
  });

  test("tables are shown with their columns, indexes and rows, page by page", async () => {
    const service = await withCluster();
    const page = await open(service, "?view=tables");
    await page.getByRole("row", { name: /^orders public table 250/ }).waitFor();
    await page.getByRole("row", { name: /^customers public view/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "orders", exact: true }).click();
    await page.getByText("Rows 1 to 100, in order by the primary key").waitFor();
    await page.getByText("CREATE INDEX by_customer ON public.orders USING btree (customer)").waitFor();
    expect((await cells(page, "Columns")).slice(0, 3)).toEqual(["integer", "never", "primary key"]);
    expect((await cells(page, "Rows")).slice(0, 9)).toEqual([
      ...["1", "customer 1", '""'],
      ...["2", "customer 2", `${"long ".repeat(40)}… all 500 characters`],
      ...["3", "customer 3", "NULL"],
    ]);
    await page.getByRole("button", { name: "all 500 characters" }).first().click();
    await dialog(page).getByText("long ".repeat(100).trim()).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("Rows 201 to 250").waitFor();
    expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
    expect(await accessibilityProblems(page)).toEqual([]);
    // The address says where it is.
    await page.reload();
    await page.getByText("Rows 201 to 250").waitFor();
    await page.getByRole("button", { name: "All tables" }).click();
    await page.getByRole("button", { name: "customers", exact: true }).click();
    await page.getByText("in no order: it may change from page to page").waitFor();
    // Names and values are text, whatever is in them.
    await page.getByRole("button", { name: "All tables" }).click();
    await page.getByRole("button", { name: "<img src=x onerror=alert(1)>" }).click();
    await page.getByText("Rows 1 to 1, in order as they are stored").waitFor();
    expect(await cells(page, "Rows")).toEqual(["<script>alert(2)</script>"]);
  });

  for (const colorScheme of ["light", "dark"] as const)
    test(`a query is typed, completed, run and copied, in ${colorScheme}`, async () => {
      const service = await withCluster();
      const { owner } = service;
      const page = await open(service, "?view=query", { ...clipboard, colorScheme });
      await ask(page, "SELECT id, note FROM orders WHERE id < 4 ORDER BY id", "3 rows");
      expect(await cells(page, "Rows of the query")).toEqual([
        ...["1", '""', "2", `${"long ".repeat(40)}… all 500 characters`, "3", "NULL"],
      ]);
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole("button", { name: "Copy as CSV" }).click();
      await expect.poll(() => copied(page)).toBe(`id,note\r\n1,""\r\n2,${"long ".repeat(100)}\r\n3,\r\n`);
      await page.getByRole("button", { name: "Copy as JSON" }).click();
      await expect.poll(async () => (await copied(page)).startsWith("[")).toBe(true);
      expect(JSON.parse(await copied(page))[2]).toEqual({ id: "3", note: null });

      await ask(page, "SELECT *\nFROM 'é👍', ordres", "syntax error");
      await page.getByText("At line 2, character 6.").waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await ask(page, "DELETE FROM orders", "cannot execute DELETE in a read-only transaction");
      await page.getByLabel("It may change data").check();
      await page.getByText("What it changes is kept").waitFor();
      await typeQuery(page, "DELETE FROM orders WHERE id > 200");
      await page.getByRole("button", { name: "Run and keep the changes" }).click();
      await page.getByText(/^DELETE, 50 rows/).waitFor();
      expect((await owner.query("SELECT count(*)::int AS n FROM orders")).rows).toEqual([{ n: 200 }]);

      // Completion, and the focus leaves with Tab.
      await typeQuery(page, "SELECT cust");
      await page.keyboard.press("Control+Space");
      await page.getByRole("option", { name: "customers" }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Tab");
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Run and keep the changes");

      await typeQuery(page, "SELECT pg_sleep(60)");
      await page.keyboard.press("Control+Enter");
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByText("Cancelled.").waitFor();
      await expect.poll(async () => (await service.get(`/postgres/${service.ready.id}/queries/active`)).length).toBe(0);
    });

  test("a telephone shows tables and answers without a page that is wider than it", async () => {
    const service = await withCluster();
    const page = await open(service, "?view=query", { viewport: { width: 390, height: 800 } });
    const fits = () => page.evaluate<boolean>("document.documentElement.scrollWidth <= innerWidth");
    await ask(page, "SELECT * FROM orders", "250 rows");
    expect(await fits()).toBe(true);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "Tables" }).click();
    await page.getByRole("button", { name: "orders", exact: true }).click();
    await page.getByText("Rows 1 to 100").waitFor();
    expect(await fits()).toBe(true);
    await page.getByRole("button", { name: "Cluster", exact: true }).click();
    await page.getByLabel("Address to connect with").waitFor();
    expect(await fits()).toBe(true);
  });

  test("a session that only reads has no button, and no table; a simulated cluster says that it is one", async () => {
    const service = await withCluster("read");
    const page = await open(service);
    await page.getByLabel("Address to connect with").waitFor();
    for (const name of [/^Create/, /^Delete/, /^Rotate/, /^Take/, /^Fork/, /with the password$/, /^Reveal/])
      expect([String(name), await page.getByRole("button", { name }).count()]).toEqual([String(name), 0]);
    for (const view of ["Tables", "Query"]) {
      await page.getByRole("button", { name: view, exact: true }).click();
      await page.getByText("They need a console that was started with --console write").waitFor();
    }
    expect(service.requests.filter(({ operation }) => operation?.startsWith("console."))).toEqual([]);
    const simulated = await withService({ console: "write" });
    const { id } = await requestsOfClusters(simulated.call).cluster({ name: "not-real" });
    const other = await openPage(simulated);
    await signIn(other, simulated, `/console/clusters/${id}`);
    await other.getByText("This cluster is simulated: nothing listens at its address.").waitFor();
    await other.getByRole("button", { name: "Query", exact: true }).click();
    await other.getByText("This cluster is simulated: it has no tables").waitFor();
    expect(await accessibilityProblems(other)).toEqual([]);
  });
});
