// The columns of docs/engine-options.md: the inputs of each, and how they change.

/** The columns. */
export const kinds = ["Volume", "Machine", "Fleet", "PostgresCluster", "Secret"] as const;
/** One of them. */
export type Kind = (typeof kinds)[number];
/** Inputs or options. */
export type Values = Readonly<Record<string, unknown>>;
/** How the program changes: in place, by a replacement, … */
export type Change = "small" | "big" | "removed" | "renamed" | "other";

/** The image of its Machines. */
export const image = "registry.example.com/web:1";
/** The name of the secret of a row. */
export const secretName = (key: string): string => key.toUpperCase().replaceAll("-", "_");

const short = (kind: Kind): string => (kind === "PostgresCluster" ? "cluster" : kind.toLowerCase());
/** The name of a resource in the program. */
export const nameOf = ({ key }: { readonly key: string }, kind: Kind): string => `${key}-${short(kind)}`;

const isOther = (change?: Change): boolean => change === "big" || change === "other";
const configOf = (change?: Change): Values => ({ image, ...(change === "small" ? { env: { LEVEL: "2" } } : {}) });

/** The inputs of each. */
export const inputs: Readonly<Record<Kind, (key: string, app: string, change?: Change) => Values>> = {
  Volume: (_, app, change) => ({ app, region: "ams", sizeGb: change === "small" ? 2 : 1, encrypted: change !== "big" }),
  Machine: (_, app, change) => ({ app, region: change === "big" ? "fra" : "ams", config: configOf(change) }),
  Fleet: (key, app, change) => ({
    ...{ app, regions: { ams: 1 }, config: configOf(change) },
    ...(isOther(change) ? { name: `${nameOf({ key }, "Fleet")}-2` } : {}),
  }),
  PostgresCluster: (_, __, change) => ({ region: "fra", plan: change === "big" ? "starter" : "basic" }),
  Secret: (key, app, change) => ({
    ...{ app, name: `${secretName(key)}${isOther(change) ? "_2" : ""}` },
    value: change === "small" ? "2" : "1",
  }),
};
/** The input whose change replaces each. */
export const replacing = {
  ...{ Volume: "encrypted", Machine: "region", Fleet: "name", PostgresCluster: "plan", Secret: "name" },
} as const;
/** The input that changes in place. */
export const inPlace = {
  ...{ Volume: "sizeGb", Machine: "config", Fleet: "config", PostgresCluster: "deletionProtection", Secret: "value" },
} as const;
/** The inputs that allow a loss. */
export const switches: Readonly<Partial<Record<Kind, Values>>> = {
  Volume: { allowDataLoss: true },
  PostgresCluster: { deletionProtection: false },
};
