// What Terraform manages: its state, as ids of our resources under Terraform's names.
import { z } from "zod";
import { MachinesError } from "../../provider/client/errors.ts";

/** What a state of Terraform manages. */
export interface TerraformState {
  /** Terraform's names of objects, by type and id: `Machine shop/3d8d413b29d089`. */
  readonly names: ReadonlyMap<string, string>;
  /** The Apps of the objects. */
  readonly apps: readonly string[];
  /** Whether it has Postgres clusters or what is in them. */
  readonly hasClusters: boolean;
  /** Sentences about what has no counterpart. */
  readonly remarks: readonly string[];
}

type Attributes = Readonly<Record<string, unknown>>;

/** A type of Terraform: ours, and the parts of its id. In parts, `=` begins a fixed word. */
interface Counterpart {
  readonly type: string;
  readonly id: readonly string[];
}

/** The types of the two community providers (`fly-apps/fly`, `stategraph/fly`). */
const counterparts: Readonly<Record<string, Counterpart>> = {
  fly_app: { type: "App", id: ["name"] },
  fly_machine: { type: "Machine", id: ["app", "id"] },
  fly_volume: { type: "Volume", id: ["app", "id"] },
  fly_volume_snapshot: { type: "VolumeSnapshot", id: ["app", "volume_id", "id"] },
  fly_ip: { type: "IpAssignment", id: ["app", "address"] },
  fly_ip_address: { type: "IpAssignment", id: ["app", "address"] },
  fly_cert: { type: "AcmeCertificate", id: ["app", "hostname"] },
  fly_certificate: { type: "AcmeCertificate", id: ["app", "hostname"] },
  fly_secret: { type: "Secret", id: ["app", "key"] },
  fly_mpg_cluster: { type: "PostgresCluster", id: ["id"] },
  fly_mpg_database: { type: "PostgresDatabase", id: ["cluster_id", "=database", "name"] },
  fly_mpg_user: { type: "PostgresUser", id: ["cluster_id", "=user", "username"] },
  fly_mpg_attachment: { type: "PostgresAttachment", id: ["cluster_id", "app"] },
};

const index = z.union([z.string(), z.number()]).optional();
const attributes = z.record(z.string(), z.unknown());

/** `terraform state pull`. */
const pulled = z.object({
  version: z.literal(4),
  resources: z.array(
    z.object({
      mode: z.string(),
      type: z.string(),
      name: z.string(),
      module: z.string().optional(),
      instances: z.array(z.object({ index_key: index, attributes: attributes.nullish() })),
    }),
  ),
});

interface Module {
  readonly resources?: readonly z.infer<typeof shownResource>[] | undefined;
  readonly child_modules?: readonly (Module & { readonly address: string })[] | undefined;
}

const shownResource = z.object({ mode: z.string(), type: z.string(), name: z.string(), index, values: attributes });
const shownModule: z.ZodType<Module> = z.object({
  resources: z.array(shownResource).optional(),
  child_modules: z.array(z.lazy(() => z.intersection(shownModule, z.object({ address: z.string() })))).optional(),
});

/** `terraform show -json`. */
const shown = z.object({ format_version: z.string(), values: z.object({ root_module: shownModule }).optional() });

/** A resource of Terraform. */
interface Instance {
  readonly type: string;
  /** With its module and index: `blue-web-0`. */
  readonly name: string;
  readonly attributes: Attributes;
}

/**
 * Reads the output of `terraform state pull` or `terraform show -json`.
 * @throws MachinesError `invalid-input` if it is something else, or manages nothing of ours.
 */
export function readTerraform(text: string, file: string): TerraformState {
  const instances = instancesIn(text, file).filter(({ type }) => type.startsWith("fly_"));
  if (instances.length === 0)
    throw new MachinesError("invalid-input", `--terraform ${file}: it manages no resource whose type begins with fly_`);
  const names = new Map<string, string>();
  const apps = new Set<string>();
  const remarks: string[] = [];
  let hasClusters = false;
  for (const { type, name, attributes } of instances) {
    const ours = counterparts[type];
    const parts = ours?.id.map((part) => (part.startsWith("=") ? part.slice(1) : textOf(attributes[part])));
    if (ours === undefined || parts === undefined) {
      remarks.push(`${type}.${name}: there is no resource for it.`);
    } else if (parts.some((part) => part === "")) {
      remarks.push(`${type}.${name}: the state lacks ${ours.id.filter((_, i) => parts[i] === "").join(" and ")}.`);
    } else {
      names.set(`${ours.type} ${parts.join("/")}`, name);
      if (ours.type.startsWith("Postgres")) hasClusters = true;
      else apps.add(parts[0] ?? "");
    }
  }
  return { names, apps: [...apps].sort(), hasClusters, remarks: remarks.sort() };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

function instancesIn(text: string, file: string): readonly Instance[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  const state = pulled.safeParse(parsed);
  if (state.success)
    return state.data.resources
      .filter(({ mode }) => mode === "managed")
      .flatMap(({ type, name, module, instances }) =>
        instances.map(({ index_key, attributes }) => ({
          type,
          name: nameOf(module, name, index_key),
          attributes: attributes ?? {},
        })),
      );
  const output = shown.safeParse(parsed);
  if (output.success && output.data.values) return inModule(output.data.values.root_module, undefined);
  throw new MachinesError(
    "invalid-input",
    `--terraform ${file}: it is no output of \`terraform state pull\` or \`terraform show -json\``,
  );
}

const inModule = ({ resources = [], child_modules = [] }: Module, address: string | undefined): readonly Instance[] => [
  ...resources
    .filter(({ mode }) => mode === "managed")
    .map(({ type, name, index: at, values }) => ({ type, name: nameOf(address, name, at), attributes: values })),
  ...child_modules.flatMap((child) => inModule(child, child.address)),
];

/** `module.blue["a"]`, `web`, 0 as `blue-a-web-0`. */
const nameOf = (module: string | undefined, name: string, at: string | number | undefined): string =>
  [...(module ?? "").split(/[^\w-]+/).filter((word) => word !== "" && word !== "module"), name, at]
    .filter((part) => part !== undefined)
    .join("-");
