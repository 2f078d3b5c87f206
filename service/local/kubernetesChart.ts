// A Helm chart with the objects of the manifest. It is made from the manifest itself, with templates in place of the options, so that
// what Helm installs is what `kubernetes manifest` prints.
import { isDeepStrictEqual } from "node:util";
import { version } from "../version.ts";
import { firstRaw, parts, type ManifestOptions } from "./kubernetesManifest.ts";

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
  kubeconfigSecret: [
    {},
    "Secrets with the kubeconfig of the clusters of regions, by region; the cluster of the service has all if empty.",
  ],
  postgres: ["", "What runs Postgres clusters: cnpg for CloudNativePG; a simulation if empty."],
  postgresBackup: ["", "Address of their object storage, such as s3:https://s3.example.com/bucket; none if empty."],
  postgresBackupSecret: ["", "Secret with its credentials, named as variables."],
  storeSecret: ["", "Secret with the url and the key of a database that several members share; one process if empty."],
  replicas: [3, "Number of members, with storeSecret."],
  proxy: [false, "Whether there are proxies of their own instead of Ingresses, which start and stop Machines."],
  proxyReplicas: [2, "Number of proxies, with proxy."],
  proxyTcp: [[], "Raw ports of Apps, such as db:5432 or db:5432=15432, with proxy."],
} as const satisfies Readonly<Record<string, readonly [string | number | boolean | object, string]>>;

type Value = keyof typeof values;

/** Values that may be empty: what they are in is left out then. */
const optional: readonly Value[] = [
  ...(["storageClass", "ingressClass", "acme", "clusterIssuer", "postgres", "postgresBackup"] as const),
  "postgresBackupSecret",
];

/** Groups of arguments that depend on more than the value in them, by their first word. */
const ofOptions: Readonly<Record<string, string>> = {
  "--ingress-class": "or .Values.proxy .Values.ingressClass",
  "--acme-address": "and .Values.acme (not .Values.proxy)",
};

/** Those that have objects of their own. */
const withObjects = ["clusterIssuer", "postgres", "proxies"] as const satisfies readonly (keyof ManifestOptions)[];

/** The value that these depend on. */
const valueOf = (option: (typeof withObjects)[number]): Value => (option === "proxies" ? "proxy" : option);

/** The template of a value. */
const template = (name: Value, filter = "quote"): string => `{{ .Values.${name} | ${filter} }}`;

const image = `{{ required "image is required: the image with the commands machines-service and node" .Values.image | quote }}`;

const namespace = "{{ .Release.Namespace }}";

const everything: ManifestOptions = {
  ...{ image, namespace },
  storage: template("storage"),
  storageClass: template("storageClass"),
  ingressClass: `{{ .Values.proxy | ternary "none" .Values.ingressClass | quote }}`,
  clusters: [{ region: "{{ $region }}", secret: "{{ $secret }}" }],
  acme: template("acme"),
  clusterIssuer: template("clusterIssuer"),
  postgres: template("postgres"),
  postgresBackup: { at: template("postgresBackup"), secret: template("postgresBackupSecret") },
};

// They are numbers once Helm has filled them in.
const number = (text: string): number => text as unknown as number;

const members = {
  replicas: number(template("replicas", "int")),
  secret: template("storeSecret"),
};

const proxies = {
  replicas: number(template("proxyReplicas", "int")),
  tcp: [{ app: "{{ $tcp.app }}", port: number("{{ $tcp.port }}"), at: number("{{ $tcp.at | int }}") }],
};

/** What is there once for each of several: in the manifest of one, it has the mark, and the number of the first. */
const repeated = [
  { mark: "$region ", begin: "range $region, $secret := .Values.kubeconfigSecret", first: "", each: "" },
  { mark: "$secret ", begin: "range $i, $secret := $secrets", first: "cluster-0", each: "cluster-{{ $i }}" },
  { mark: "$tcp.", begin: "range $tcp := $raw", first: String(firstRaw), each: "{{ $tcp.inside }}" },
] as const;

/** Computed once, for all templates: the Secrets of clusters, each once, and the raw ports. */
const lists = `{{- $secrets := list }}
{{- range $region, $secret := .Values.kubeconfigSecret }}
{{- $secrets = append $secrets $secret | uniq }}
{{- end }}
{{- $raw := list }}
{{- range $i, $one := .Values.proxyTcp }}
{{- $sides := splitList "=" $one }}
{{- $from := splitList ":" (first $sides) }}
{{- $at := last (splitList ":" (last $sides)) }}
{{- $raw = append $raw (dict "app" (first $from) "port" (last $from) "at" $at "inside" (add ${firstRaw} $i)) }}
{{- end }}
`;

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
      Object.entries(values).map(([name, [usual, description]]) => [name, { ...kindOf(usual), description }]),
    ),
  },
};

/** What a value may be, from what it usually is. */
function kindOf(usual: string | number | boolean | object): object {
  if (typeof usual === "number") return { type: "integer", minimum: 1, maximum: 999 };
  if (typeof usual === "boolean") return { type: "boolean" };
  if (typeof usual === "string") return { type: "string" };
  if (Array.isArray(usual))
    return { type: "array", items: { type: "string", pattern: "^[a-z\\d][a-z\\d-]*:\\d{1,5}(=\\d{1,5})?$" } };
  const secret = { type: "string", pattern: "^[a-z0-9][a-z0-9.-]*$" };
  return { type: "object", propertyNames: { pattern: "^[a-z0-9-]+$" }, additionalProperties: secret };
}

/** As the command refuses them. */
const refusal = `{{- if and .Values.acme .Values.clusterIssuer }}
{{- fail "acme cannot be combined with clusterIssuer: one of them issues" }}
{{- end }}
{{- if and .Values.proxy .Values.ingressClass }}
{{- fail "proxy cannot be combined with ingressClass: there are no Ingresses with proxies" }}
{{- end }}
{{- if and .Values.proxyTcp (not .Values.proxy) }}
{{- fail "proxyTcp needs proxy, which adds proxies of their own" }}
{{- end }}
{{- if and .Values.postgresBackup (or (not .Values.postgres) (not .Values.postgresBackupSecret)) }}
{{- fail "postgresBackup needs postgres and postgresBackupSecret" }}
{{- end }}
{{- if and .Values.postgresBackupSecret (not .Values.postgresBackup) }}
{{- fail "postgresBackupSecret needs postgresBackup, the address" }}
{{- end }}
`;

/** All objects, each under the condition under which the manifest has it. */
function templates(): string {
  const ofProxies = parts({ ...everything, proxies }).slice(parts(everything).length);
  const alone = [...parts(everything), ...ofProxies];
  const shared = [...parts({ ...everything, members }), ...ofProxies];
  const without = withObjects.map((option) => {
    const { [option]: _, ...others } = everything;
    return { value: valueOf(option), list: option === "proxies" ? parts(others) : [...parts(others), ...ofProxies] };
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
  return `${refusal}${lists}${documents}`;
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
            groupOf(
              group,
              group.map((word) => `- ${scalarOf(word)}`),
            ),
          )
        : linesOf(member);
    // These variables are of one Secret.
    if (key === "envFrom") return under(JSON.stringify(member), [`${key}:`, ...lines.map(indented)]);
    const isShort = lines.length === 1 && (typeof member !== "object" || ["[]", "{}"].includes(lines[0] ?? ""));
    return isShort ? under(member, [`${key}: ${lines[0]}`]) : [`${key}:`, ...lines.map(indented)];
  });
}

function itemOf(item: unknown): readonly string[] {
  const [first = "", ...others] = linesOf(item);
  const lines = [`- ${first}`, ...others.map(indented)];
  const members = typeof item === "object" && item !== null ? Object.values(item) : [];
  // A list with many members is inside of it.
  return members.some((member) => Array.isArray(member)) ? lines : forEach(item, lines);
}

/** Lines for each of several, if they are made from a mark. */
function forEach(value: unknown, lines: readonly string[]): readonly string[] {
  const text = JSON.stringify(value);
  const found = repeated.find(({ mark }) => text.includes(mark));
  if (!found) return lines;
  const { begin, first, each } = found;
  return [`{{- ${begin} }}`, ...lines.map((line) => (first === "" ? line : line.replace(first, each))), "{{- end }}"];
}

/** A group of arguments under its condition. */
function groupOf(group: readonly string[], lines: readonly string[]): readonly string[] {
  const condition = ofOptions[group[0] ?? ""];
  return condition === undefined
    ? under(group, forEach(group, lines))
    : [`{{- if ${condition} }}`, ...lines, "{{- end }}"];
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
