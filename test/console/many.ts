// Many Machines at once, as copies of one: creating each by a request would take minutes.
import type { Service } from "../../service/index.ts";
import type { Call } from "../service/client.ts";

/** Gives an App that many Machines, in four regions and four states, named `web-000000` and so on. */
export async function fillWith(total: number, { context: { store } }: Service, call: Call): Promise<void> {
  await call("POST", "/apps", { name: "large", org_slug: "personal" });
  const config = { image: "registry.example/large:1" };
  const { body } = await call("POST", "/apps/large/machines", { name: "first", config });
  const columns = store.all<{ name: string }>("SELECT name FROM pragma_table_info('machines')").map(({ name }) => name);
  const changed: Readonly<Record<string, string>> = {
    id: "printf('%014x', value)",
    name: "printf('web-%06d', value)",
    region: "CASE value % 4 WHEN 0 THEN 'ams' WHEN 1 THEN 'fra' WHEN 2 THEN 'iad' ELSE 'nrt' END",
    state: "CASE value % 4 WHEN 0 THEN 'stopped' WHEN 1 THEN 'suspended' ELSE 'started' END",
  };
  await store.write(() => {
    store.run(
      `INSERT INTO machines (${columns.join(", ")})
       WITH RECURSIVE numbers (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM numbers WHERE value < ? - 1)
       SELECT ${columns.map((name) => changed[name] ?? `m.${name}`).join(", ")} FROM numbers, machines m WHERE m.id = ?`,
      total,
      String(body.id),
    );
  });
  await call("DELETE", `/apps/large/machines/${body.id}?force=true`);
}
