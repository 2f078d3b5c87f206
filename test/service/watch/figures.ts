// Reads /metrics as a scraper does.
import { expect } from "vitest";
import { catalogue, type Described } from "../../../service/watch/catalogue.ts";

/** All metrics of the catalogue by name. */
export const described: ReadonlyMap<string, Described> = new Map(
  Object.values(catalogue).flatMap((metrics) => Object.values(metrics).map((one) => [one.name, one] as const)),
);

/** The metrics of a service by name and labels. Every line must be as the catalogue says. */
export async function figures({ url, token }: { url: string; token: string }): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect([response.status, response.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  const lines = (await response.text()).trimEnd().split("\n");
  const types = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ")[2] ?? "");
  for (const name of types) {
    const { type, help } = described.get(name) ?? {};
    expect(lines).toContain(`# HELP ${name} ${help}`);
    expect(lines).toContain(`# TYPE ${name} ${type}`);
  }
  const samples = lines
    .filter((line) => !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] =
        /^([a-z_]+)(\{(?:[a-z]+="[^"\n]*",?)+\})? (-?[\d.e+-]+)$/.exec(line) ?? [];
      const metric = types.includes(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
      expect(types, line).toContain(metric);
      const names = [...labels.matchAll(/([a-z]+)="/g)].map(([, label]) => label);
      const { labels: expected = [] } = described.get(metric) ?? {};
      expect(names, line).toEqual(name.endsWith("_bucket") ? [...expected, "le"] : expected);
      return [`${name}${labels}`, Number(value)] as const;
    });
  expect(lines.length).toBe(samples.length + 2 * types.length);
  const found = new Map(samples);
  expect(found.size, "no sample is twice").toBe(samples.length);
  return found;
}
