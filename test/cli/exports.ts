// Stack exports as `pulumi stack export` writes them, in the format of either binding.
import type { Values } from "../../provider/core/resource.ts";

/** The two formats of a state. */
export const shapes = ["dynamic", "plugin"] as const;
export type Shape = (typeof shapes)[number];

/** One of our resources in an export. */
export interface Exported {
  readonly type: string;
  readonly name: string;
  /** Omitted while its creation is pending. */
  readonly id?: string;
  readonly inputs?: Values;
  readonly outputs?: Values;
  readonly external?: boolean;
  /** Whether its deletion is pending. */
  readonly delete?: boolean;
  /** Name of the program's explicit provider. */
  readonly provider?: string;
  /** Name of the component that contains it. */
  readonly within?: string;
}

/** A secret in an export without `--show-secrets`. */
export const sealed = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", ciphertext: "v1:xyz" };

const root = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev";
const componentUrn = (name: string): string => `urn:pulumi:dev::shop::my:index:Tier::${name}`;
const providerUrn = (name: string): string => `urn:pulumi:dev::shop::pulumi:providers:machines::${name}`;
const tokenOf = (shape: Shape, type: string): string =>
  shape === "dynamic" ? `pulumi-nodejs:dynamic/machines:${type}` : `machines:index:${type}`;

/** The URN of a resource. */
export const urnOf = (shape: Shape, type: string, name: string, within?: string): string =>
  `urn:pulumi:dev::shop::${within === undefined ? "" : "my:index:Tier$"}${tokenOf(shape, type)}::${name}`;

function entry(shape: Shape, { type, name, within, provider, inputs = {}, outputs = {}, ...rest }: Exported) {
  const from =
    shape === "dynamic"
      ? "urn:pulumi:dev::shop::pulumi:providers:pulumi-nodejs::default::0a1b"
      : `${providerUrn(provider ?? "default_0_1_0")}::0a1b`;
  return {
    urn: urnOf(shape, type, name, within),
    custom: true,
    type: tokenOf(shape, type),
    inputs,
    outputs,
    parent: within === undefined ? root : componentUrn(within),
    provider: from,
    ...rest,
  };
}

/** Other options of an export. */
export interface Around {
  readonly pending?: readonly Exported[];
  /** Inputs of the program's explicit providers, by name. */
  readonly providers?: Readonly<Record<string, Values>>;
  /** Names of the program's Releases, which are components. */
  readonly releases?: readonly string[];
}

/** The JSON text of an export. */
export function exportOf(
  shape: Shape,
  resources: readonly Exported[],
  { pending = [], providers = {}, releases = [] }: Around = {},
): string {
  const own = Object.entries({ ...(shape === "plugin" ? { default_0_1_0: {} } : {}), ...providers });
  const deployment = {
    manifest: { time: "2026-01-31T12:00:00Z", magic: "", version: "v3.259.0" },
    resources: [
      { urn: root, custom: false, type: "pulumi:pulumi:Stack" },
      ...own.map(([name, inputs]) => ({
        urn: providerUrn(name),
        custom: true,
        id: "0a1b",
        type: "pulumi:providers:machines",
        inputs,
        outputs: inputs,
        parent: root,
      })),
      ...releases.map((name) => ({
        urn: `urn:pulumi:dev::shop::machines:index:Release::${name}`,
        custom: false,
        type: "machines:index:Release",
        parent: root,
      })),
      ...resources.map((resource) => entry(shape, resource)),
    ],
    pending_operations: pending.map((resource) => ({ resource: entry(shape, resource), type: "creating" })),
  };
  return JSON.stringify({ version: 3, deployment });
}
