// The description of the service as a page for people: one file, which loads nothing.
import { curlOf } from "./curl.ts";
import { escape, htmlPage, prose } from "./html.ts";
import type { JsonSchema } from "./jsonSchema.ts";
import { searchScript } from "./search.ts";
import type { Described, DescribedOperation, OpenApi, Parameter } from "./types.ts";

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

/** Stand for the address of the service and the shell's access token while the page is built. No text contains them. */
const addressMark = "\0address\0";
const tokenMark = "\0token\0";

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
    description === undefined ? "" : `<p>${prose(description)}</p>`,
    parameters.length > 0
      ? `<h4>Parameters</h4>${table(["name", "in", "type", "", ""], parameters.map(parameterRow))}`
      : "",
    asked ? `<h4>Body${requestBody?.required ? "" : " (may be left out)"}</h4>${body(asked.schema)}` : "",
    asked?.example === undefined ? "" : `<pre>${escape(JSON.stringify(asked.example, null, 2))}</pre>`,
    `<h4>Example</h4><pre>${escape(curlOf(addressMark, path, method, described))}</pre>`,
    `<h4>Answers</h4>${table(["status", "", "body"], Object.entries(responses).map(answerRow))}`,
  ];
  return `<details id="${operationId}"><summary><b>${method.toUpperCase()}</b> <code>${escape(path)}</code> <i>${operationId}</i><span>${prose(summary)}</span></summary>${parts.join("")}</details>`;
}

function schemaPart([name, schema]: [string, JsonSchema]): string {
  const [example] = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [];
  const shown = example === undefined ? "" : `<pre>${escape(JSON.stringify(example, null, 2))}</pre>`;
  return `<details id="${name}"><summary><code>${name}</code></summary>${body(schema)}${shown}</details>`;
}

const search = `<p hidden><input id="search" type="search" placeholder="Search, for example: create volume" aria-label="Search"> <span id="found" role="status"></span></p>`;

/**
 * The page, for the address that it is requested at, and the command that prints a token: undefined if the reader cannot run
 * it.
 */
export function docsPage({
  info,
  tags,
  paths,
  components,
}: OpenApi): (address: string, tokenCommand: string | undefined) => string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method, described })),
  );
  const groups = tags.map(({ name, description }) => {
    const operations = all.filter(({ described }) => described.tags.includes(name));
    const parts = operations.map(({ path, method, described }) => operation(path, method, described));
    return `<section><h2 id="${name}">${name}</h2><p>${prose(description)}</p>${parts.join("\n")}</section>`;
  });
  const contents = tags.map(({ name }) => `<a href="#${name}">${name}</a>`).join(" · ");
  const title = `${String(info["title"])} ${String(info["version"])}`;
  const page = htmlPage(
    title,
    `<h1>${escape(title)}</h1>
<p>Every request carries an access token. The examples take it from a variable of the shell:</p>
<pre>TOKEN=${tokenMark}</pre>
<p>For programs, the same is at <a href="/openapi.json">/openapi.json</a>.</p>
${search}
<nav>${contents} · <a href="#schemas">schemas</a></nav>
${groups.join("\n")}
<section><h2 id="schemas">schemas</h2>${Object.entries(components.schemas).map(schemaPart).join("\n")}</section>
<script>${searchScript}</script>`,
  );
  const [head = "", ...parts] = page.split(addressMark);
  return (address, tokenCommand) => {
    const token = tokenCommand === undefined ? "…" : `$(${tokenCommand})`;
    // The line with the token comes before every address.
    return [head.replace(tokenMark, () => escape(token)), ...parts].join(escape(address));
  };
}
