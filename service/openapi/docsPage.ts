// The description of the service as a page for people: one file without scripts or other resources.
import type { JsonSchema } from "./jsonSchema.ts";
import type { Described, DescribedOperation, OpenApi, Parameter } from "./types.ts";

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character] ?? character);

/** Plain text with `code` in it. */
const prose = (text: string): string => escape(text).replace(/`([^`]+)`/g, "<code>$1</code>");

const nameOf = (ref: unknown): string => String(ref).split("/").at(-1) ?? "";
const isSchema = (value: unknown): value is JsonSchema => typeof value === "object" && value !== null;

/** The type of a value in a few words; a named type is a link. */
function typeText(schema: JsonSchema): string {
  if (schema["$ref"] !== undefined) return `<a href="#${nameOf(schema["$ref"])}">${nameOf(schema["$ref"])}</a>`;
  if (Array.isArray(schema["anyOf"])) return schema["anyOf"].filter(isSchema).map(typeText).join(" or ");
  if ("const" in schema) return `<code>${escape(JSON.stringify(schema["const"]))}</code>`;
  if (Array.isArray(schema["enum"]))
    return schema["enum"].map((value) => `<code>${escape(JSON.stringify(value))}</code>`).join(", ");
  const { type, items, additionalProperties, minimum, maximum, format } = schema;
  if (type === "array" && isSchema(items)) return `array of ${typeText(items)}`;
  if (type === "object" && isSchema(additionalProperties)) return `map of ${typeText(additionalProperties)}`;
  const words = [type].flat().join(" or ");
  const safe = (bound: unknown): bound is number =>
    typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  const range =
    safe(minimum) || safe(maximum) ? ` (${safe(minimum) ? minimum : ""}…${safe(maximum) ? maximum : ""})` : "";
  return escape(`${words === "" ? "anything" : words}${typeof format === "string" ? ` (${format})` : ""}${range}`);
}

const row = (cells: readonly string[]): string => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;

const table = (heads: readonly string[], rows: readonly string[]): string =>
  `<table><thead><tr>${heads.map((head) => `<th>${head}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;

/** The members of an object, including those of members with an unnamed type. */
function members(schema: JsonSchema, path = ""): string[] {
  const { properties, required, items, additionalProperties } = schema;
  if (isSchema(items)) return members(items, `${path}[]`);
  if (isSchema(additionalProperties)) return members(additionalProperties, `${path}.*`);
  const inner = Array.isArray(schema["anyOf"]) ? schema["anyOf"].filter(isSchema) : [];
  if (inner.length > 0) return inner.flatMap((one) => members(one, path));
  if (!isSchema(properties)) return [];
  return Object.entries(properties).flatMap(([name, value]) => {
    if (!isSchema(value)) return [];
    const at = path === "" ? name : `${path}.${name}`;
    const needed = Array.isArray(required) && required.includes(name) ? "required" : "";
    const text = typeof value["description"] === "string" ? prose(value["description"]) : "";
    const preset =
      value["default"] === undefined ? "" : ` Default <code>${escape(JSON.stringify(value["default"]))}</code>.`;
    return [row([`<code>${escape(at)}</code>`, typeText(value), needed, text + preset]), ...members(value, at)];
  });
}

function body(schema: JsonSchema): string {
  const rows = members(schema);
  return rows.length > 0 ? table(["field", "type", "", ""], rows) : `<p>${typeText(schema)}</p>`;
}

const parameterRow = ({ name, in: place, required, schema, description }: Parameter): string =>
  row([`<code>${escape(name)}</code>`, place, typeText(schema), required ? "required" : "", prose(description)]);

function answerRow([status, { description, content }]: [string, Described]): string {
  const media = Object.values(content ?? {})[0];
  return row([status, prose(description), media ? typeText(media.schema) : "no body"]);
}

function operation(path: string, method: string, described: DescribedOperation): string {
  const { operationId, summary, description, parameters = [], requestBody, responses } = described;
  const asked = Object.values(requestBody?.content ?? {})[0];
  const parts = [
    `<p>${prose([summary, description].filter((text) => text !== undefined).join(" "))}</p>`,
    parameters.length > 0
      ? `<h4>Parameters</h4>${table(["name", "in", "type", "", ""], parameters.map(parameterRow))}`
      : "",
    asked ? `<h4>Body${requestBody?.required ? "" : " (may be left out)"}</h4>${body(asked.schema)}` : "",
    asked?.example === undefined ? "" : `<pre>${escape(JSON.stringify(asked.example, null, 2))}</pre>`,
    `<h4>Answers</h4>${table(["status", "", "body"], Object.entries(responses).map(answerRow))}`,
  ];
  return `<details id="${operationId}"><summary><b>${method.toUpperCase()}</b> <code>${escape(path)}</code> <span>${operationId}</span></summary>${parts.join("")}</details>`;
}

function schemaPart([name, schema]: [string, JsonSchema]): string {
  const [example] = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [];
  const shown = example === undefined ? "" : `<pre>${escape(JSON.stringify(example, null, 2))}</pre>`;
  return `<details id="${name}"><summary><code>${name}</code></summary>${body(schema)}${shown}</details>`;
}

const style = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0; } th { text-align: left; }
th, td { padding: .15rem .9rem .15rem 0; vertical-align: top; border-bottom: 1px solid #8884; }
details { border: 1px solid #8886; border-radius: 4px; margin: .4rem 0; padding: .3rem .7rem; overflow-x: auto; }
summary { cursor: pointer; } summary b { display: inline-block; width: 4.5rem; } summary span { opacity: .65; float: right; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { background: #8882; padding: .6rem; overflow-x: auto; }
`;

/** The page. */
export function docsPage({ info, tags, paths, components }: OpenApi): string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method, described })),
  );
  const groups = tags.map(({ name, description }) => {
    const operations = all.filter(({ described }) => described.tags.includes(name));
    const parts = operations.map(({ path, method, described }) => operation(path, method, described));
    return `<section><h2 id="${name}">${name}</h2><p>${prose(description)}</p>${parts.join("\n")}</section>`;
  });
  const contents = tags.map(({ name }) => `<a href="#${name}">${name}</a>`).join(" · ");
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(String(info["title"]))}</title><style>${style}</style></head>
<body>
<h1>${escape(String(info["title"]))} ${escape(String(info["version"]))}</h1>
<p>Every request carries <code>Authorization: Bearer TOKEN</code>. For programs, the same is at <a href="/openapi.json">/openapi.json</a>.</p>
<nav>${contents} · <a href="#schemas">schemas</a></nav>
${groups.join("\n")}
<section><h2 id="schemas">schemas</h2>${Object.entries(components.schemas).map(schemaPart).join("\n")}</section>
</body>
</html>
`;
}
