// A Helm chart with the objects of the manifest. It is made from the manifest itself, with templates in place of the options, so that
// what Helm installs is what `kubernetes manifest` prints.
import { isDeepStrictEqual } from "node:util";
import { version } from "../version.ts";
import { parts, type ManifestOptions } from "./kubernetesManifest.ts";

/** A file of the chart. */
export interface ChartFile {
  readonly path: string;
  readonly text: string;
}

/** The values of the chart, named as the options of `kubernetes manifest`. */
const values = {
  image: ["", "Image with the commands machines-service and node. Required."],
  storage: ["10Gi", "Size of the volume with the data."],
  storageClass: ["", "Class of this volume; that of the cluster if empty."],
  ingressClass: ["", "Class of the Ingresses for hostnames; that of the cluster if empty."],
  acme: ["", "https address of the ACME directory that issues certificates; none if empty."],
  clusterIssuer: ["", "ClusterIssuer of cert-manager that issues them instead; none if empty."],
  postgres: ["", "What runs Postgres clusters: cnpg for CloudNativePG; a simulation if empty."],
  storeSecret: ["", "Secret with the url and the key of a database that several members share; one process if empty."],
  replicas: [3, "Number of members, with storeSecret."],
} as const satisfies Readonly<Record<string, readonly [string | number, string]>>;

type Value = keyof typeof values;

/** Values that may be empty: what they are in is left out then. */
const optional: readonly Value[] = ["storageClass", "ingressClass", "acme", "clusterIssuer", "postgres"];

/** Those that have objects of their own. */
const withObjects = ["clusterIssuer", "postgres"] as const satisfies readonly Value[];

/** The template of a value. */
const template = (name: Value, filter = "quote"): string => `{{ .Values.${name} | ${filter} }}`;

const image = `{{ required "image is required: the image with the commands machines-service and node" .Values.image | quote }}`;

const namespace = "{{ .Release.Namespace }}";

const everything: ManifestOptions = {
  ...{ image, namespace },
  storage: template("storage"),
  storageClass: template("storageClass"),
  ingressClass: template("ingressClass"),
  acme: template("acme"),
  clusterIssuer: template("clusterIssuer"),
  postgres: template("postgres"),
};

const members = {
  // It is a number once Helm has filled it in.
  replicas: template("replicas", "int") as unknown as number,
  secret: template("storeSecret"),
};

/** The files of the chart. */
export const chart = (): readonly ChartFile[] => [
  {
    path: "Chart.yaml",
    text: yamlOf({
      apiVersion: "v2",
      name: "machines-service",
      description: "The machines service, which runs Machines as Pods of this cluster.",
      type: "application",
      version,
      appVersion: version,
    }),
  },
  {
    path: "values.yaml",
    text: Object.entries(values)
      .map(([name, [usual, text]]) => `# ${text}\n${name}: ${JSON.stringify(usual)}\n`)
      .join(""),
  },
  { path: "values.schema.json", text: `${JSON.stringify(schema, undefined, 2)}\n` },
  { path: "templates/service.yaml", text: templates() },
];

const schema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  additionalProperties: false,
  properties: {
    global: { type: "object" },
    ...Object.fromEntries(
      Object.entries(values).map(([name, [usual, description]]) => [
        name,
        typeof usual === "number"
          ? { type: "integer", minimum: 1, maximum: 999, description }
          : { type: "string", description },
      ]),
    ),
  },
};

/** As the command refuses them. */
const refusal = `{{- if and .Values.acme .Values.clusterIssuer }}
{{- fail "acme cannot be combined with clusterIssuer: one of them issues" }}
{{- end }}
`;

/** All objects, each under the condition under which the manifest has it. */
function templates(): string {
  const alone = parts(everything);
  const shared = parts({ ...everything, members });
  const without = withObjects.map((value) => {
    const { [value]: _, ...others } = everything;
    return { value, list: parts(others) };
  });
  const isIn = (list: readonly object[], one: object): boolean => list.some((other) => isDeepStrictEqual(one, other));
  const isNamed = (list: readonly object[], one: object): boolean =>
    list.some((other) => nameOf(other) === nameOf(one));
  const conditions = (one: object): readonly string[] => [
    ...(isIn(alone, one) && isIn(shared, one)
      ? []
      : [isIn(alone, one) ? "not .Values.storeSecret" : ".Values.storeSecret"]),
    ...without.filter(({ list }) => isIn(alone, one) && !isNamed(list, one)).map(({ value }) => `.Values.${value}`),
  ];
  const all = [...alone, ...shared.filter((one) => !isIn(alone, one))];
  const documents = all
    .filter((one) => nameOf(one) !== `Namespace  ${namespace}`) // Helm has it: `--create-namespace`.
    .map((one) =>
      conditions(one).reduce((text, condition) => `{{- if ${condition} }}\n${text}{{- end }}\n`, `---\n${yamlOf(one)}`),
    )
    .join("");
  return `${refusal}${documents}`;
}

/** What identifies an object. */
function nameOf(one: object): string {
  const { kind, metadata } = one as { kind: string; metadata: { name: string; namespace?: string } };
  return `${kind} ${metadata.namespace ?? ""} ${metadata.name}`;
}

/** An object as YAML, with templates in place of values. Whatever depends on an optional value is under its condition. */
const yamlOf = (value: object): string =>
  linesOf(value)
    .map((line) => `${line}\n`)
    .join("");

function linesOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.length === 0 ? ["[]"] : value.flatMap(itemOf);
  if (typeof value !== "object" || value === null) return [scalarOf(value)];
  const entries = Object.entries(value);
  if (entries.length === 0) return ["{}"];
  return entries.flatMap(([key, member]: [string, unknown]) => {
    // Groups of arguments: each is there or not as a whole.
    const lines =
      key === "args" && Array.isArray(member)
        ? (member as string[][]).flatMap((group) =>
            under(
              group,
              group.map((word) => `- ${scalarOf(word)}`),
            ),
          )
        : linesOf(member);
    const isShort = lines.length === 1 && (typeof member !== "object" || ["[]", "{}"].includes(lines[0] ?? ""));
    return isShort ? under(member, [`${key}: ${lines[0]}`]) : [`${key}:`, ...lines.map(indented)];
  });
}

function itemOf(item: unknown): readonly string[] {
  const [first = "", ...others] = linesOf(item);
  return [`- ${first}`, ...others.map(indented)];
}

/** Conditions begin at the beginning of their line. */
const indented = (line: string): string => (line.startsWith("{{-") ? line : `  ${line}`);

/** Lines that are left out while the optional value is empty that they are made from. */
function under(value: unknown, lines: readonly string[]): readonly string[] {
  const text = typeof value === "object" && !Array.isArray(value) ? "" : JSON.stringify(value);
  const name = optional.find((one) => text.includes(`.Values.${one} `));
  return name === undefined ? lines : [`{{- if .Values.${name} }}`, ...lines, "{{- end }}"];
}

/** A value that is one template as a whole quotes itself. */
const scalarOf = (value: unknown): string =>
  typeof value === "string" && /^\{\{ .* \| \w+ \}\}$/.test(value) ? value : JSON.stringify(value);
