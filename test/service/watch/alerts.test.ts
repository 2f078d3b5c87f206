// The alert rules and the dashboard of the package: they ask only for what the service measures, and each rule is explained, and fires.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findPrometheus, outputOf, temporaryFolder } from "../../support/prometheus.ts";
import { thoroughTest } from "../../support/thorough.ts";
import { command } from "../command.ts";
import { cases, moment } from "./alertCases.ts";
import { described } from "./figures.ts";
import { dashboard, expressions, metricsIn, rules, rulesFile, textOf } from "./files.ts";

test("rules and panels ask only for metrics that the service has", () => {
  const asked = [...rules.map(({ expr }) => expr), ...expressions].flatMap(metricsIn);
  expect([...new Set(asked)].filter((name) => !described.has(name))).toEqual([]);
  for (const expression of [...rules.map(({ expr }) => expr), ...expressions])
    if (!expression.includes("up{")) expect(metricsIn(expression).length, expression).toBeGreaterThan(0);
});

test("every rule has a runbook, a section of the docs, and metrics for which it fires", () => {
  const page = textOf("docs/watching.md");
  for (const { alert, labels, annotations } of rules) {
    expect(page).toContain(`\n### ${alert}\n`);
    expect(annotations.runbook_url.split("/blob/main/")[1]).toBe(`docs/watching.md#${alert.toLowerCase()}`);
    expect(["critical", "warning", "info"]).toContain(labels.severity);
  }
  expect(rules.map(({ alert }) => alert)).toEqual(Object.keys(cases));
});

test("the dashboard's panels have their own places and numbers, and its variables exist", () => {
  const { panels, templating } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const taken = new Set<string>();
  for (const { title, gridPos } of panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.has(`${x} ${y}`), title).toBe(false);
        taken.add(`${x} ${y}`);
      }
  }
  const variables = new Set(templating.list.map(({ name }) => `$${name}`));
  for (const { targets = [] } of panels)
    for (const { expr } of targets)
      for (const [name] of expr.matchAll(/\$\w+/g)) expect([...variables, "$__rate_interval"]).toContain(name);
  for (const { definition = "" } of templating.list)
    for (const name of metricsIn(definition)) expect([...described.keys()]).toContain(name);
});

test("machines-service watch prints both files", async () => {
  expect(await command(["watch", "rules"])).toMatchObject({ code: 0, out: textOf("service/watch/alerts.yaml") });
  expect(await command(["watch", "dashboard"])).toMatchObject({ code: 0, out: textOf("service/watch/dashboard.json") });
});

thoroughTest("promtool accepts every rule and every expression of the dashboard", async () => {
  const promtool = await findPrometheus("promtool");
  if (promtool === undefined) return;
  const panels = join(temporaryFolder(), "panels.yaml");
  const recorded = expressions.map((expr, i) => ({ record: `panel:${i}`, expr }));
  writeFileSync(panels, JSON.stringify({ groups: [{ name: "panels", rules: recorded }] }));
  expect(await outputOf(promtool, ["check", "rules", "--lint=all", "--lint-fatal", rulesFile, panels])).toMatchObject({
    code: 0,
  });
});

thoroughTest("every rule fires when it should, and is quiet otherwise", async () => {
  const promtool = await findPrometheus("promtool");
  if (promtool === undefined) return;
  const series = (of: Readonly<Record<string, string>>) =>
    Object.entries(of).map(([name, values]) => ({ series: name, values }));
  const tests = rules.flatMap(({ alert: alertname, labels: { severity }, annotations: { runbook_url } }) => {
    const { fires, labels, summary, quiet } = cases[alertname] ?? { fires: {}, labels: {}, summary: "", quiet: [] };
    const expected = [{ exp_labels: { ...labels, severity }, exp_annotations: { summary, runbook_url } }];
    const look = (name: string, of: Readonly<Record<string, string>>, exp_alerts: object[]) => ({
      ...{ name, interval: "1m", input_series: series(of) },
      alert_rule_test: [{ eval_time: moment, alertname, exp_alerts }],
    });
    return [look(alertname, fires, expected), ...quiet.map((of, i) => look(`${alertname}, quiet ${i}`, of, []))];
  });
  const file = join(temporaryFolder(), "tests.yaml");
  writeFileSync(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }));
  expect(await outputOf(promtool, ["test", "rules", file])).toMatchObject({
    code: 0,
    text: expect.stringContaining("SUCCESS") as string,
  });
});
