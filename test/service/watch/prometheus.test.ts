// A running Prometheus with the rules of the package and a running service.
import { expect, test } from "vitest";
import { findPrometheus, startPrometheus } from "../../support/prometheus.ts";
import { withApp } from "../client.ts";
import { described } from "./figures.ts";
import { expressions, metricsIn, rules, textOf } from "./files.ts";

// As long as the rules say, the test would wait for minutes.
const atOnce = (text: string): string => text.replaceAll(/^( +for): \d+[smh]$/gm, "$1: 0s");

test("an alert fires when a Machine has failed, with its App, and ends once it is well", async () => {
  const program = await findPrometheus("prometheus");
  if (program === undefined) return;
  const scene = await withApp();
  const { call, machine, machines } = scene;
  const bad = { env: { MACHINES_SIMULATE: "crash" }, restart: { policy: "no" } };
  const { id } = await machine(bad);
  await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name: "main" });
  await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  const prometheus = await startPrometheus(
    program,
    (folder) => ({
      global: { scrape_interval: "200ms", scrape_timeout: "200ms", evaluation_interval: "200ms" },
      rule_files: [`${folder}/alerts.yaml`],
      scrape_configs: [
        {
          job_name: "machines-service",
          scrape_interval: "1s",
          scrape_timeout: "1s",
          authorization: { credentials_file: `${folder}/token` },
          static_configs: [{ targets: [new URL(scene.url).host] }],
        },
      ],
    }),
    { "alerts.yaml": atOnce(textOf("service/watch/alerts.yaml")), token: scene.token },
  );
  const firing = async (): Promise<string[]> =>
    (await prometheus.alerts())
      .filter(({ state }) => state === "firing")
      .map(({ labels }) => labels["alertname"] ?? "");
  await expect.poll(firing).toContain("MachinesFailed");
  const failed = (await prometheus.alerts()).find(({ labels }) => labels["alertname"] === "MachinesFailed");
  expect(failed).toMatchObject({ labels: { app: "web", severity: "warning" } });
  expect(failed?.annotations["summary"]).toBe("1 Machines of web have failed.");
  // Every rule was evaluated, and none had an error.
  const { groups } = await prometheus.get<{ groups: { rules: { name: string; health: string }[] }[] }>("rules");
  const found = groups.flatMap((group) => group.rules);
  expect(found.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert));
  expect(found.filter(({ health }) => health !== "ok")).toEqual([]);
  // Every expression of the dashboard is one, and what the service has is found by its name.
  for (const expression of expressions) await prometheus.query(expression);
  const metadata = await prometheus.get<Record<string, { type: string; help: string }[]>>("metadata");
  for (const name of new Set(expressions.flatMap(metricsIn))) {
    const { type, help } = described.get(name) ?? {};
    if (!name.includes("_member") && !name.includes("leaderships") && !name.includes("_log_"))
      expect(metadata[name], name).toEqual([{ type, help, unit: "" }]);
  }
  expect((await prometheus.query("machines_service_cluster_up == 1")).length).toBe(1);
  const config = { image: "nginx" };
  expect((await call("POST", `${machines}/${id}`, { config })).status).toBe(200);
  await expect.poll(async () => (await call("GET", `${machines}/${id}`)).body.state).toBe("started");
  await expect.poll(firing).not.toContain("MachinesFailed");
  expect((await prometheus.query('machines_service_app_machines{state="started"} == 1')).length).toBe(1);
});
