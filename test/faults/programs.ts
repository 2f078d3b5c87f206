// Random programs: a few resources of all types, each through several versions. The drawn data is small, so that a failure
// can be shrunk; this file gives it its meaning.
import fc from "fast-check";
import type { Values } from "../../provider/core/resource.ts";
import type { ResourceName } from "../../provider/registry.ts";
import { makeCertificate } from "../support/certificates.ts";
import type { Declared, Reference } from "../support/modelStack.ts";
import { isKind, kindNames, kinds } from "./kinds.ts";
import { onceIn } from "./ways.ts";

/** The number of versions of a program. */
export const versions = 4;

/** One resource through all versions of a program. */
export interface Slot {
  readonly kind: ResourceName;
  /** Selects a parent if there are several, and a subtype. */
  readonly pick: number;
  /** The variant of each version; null if the resource is not in the program. */
  readonly life: readonly (number | null)[];
  /** Whether its data must not be lost: no `allowDataLoss`, but `deletionProtection`. */
  readonly isGuarded?: true;
  /** For each version, whether the resource is renamed in the program, with or without an alias. */
  readonly renames?: readonly (Renaming | null)[];
  /** `strict`: a change of its parent replaces it; `first`: it is deleted before its replacement is created. */
  readonly option?: "protect" | "retain" | "strict" | "first";
}

/** How a resource is renamed in the program. */
export type Renaming = "alias" | "bare";

/** The content of a program. */
export interface Design {
  readonly slots: readonly Slot[];
  /** For each version, whether the App of most resources is renamed. */
  readonly apps?: readonly boolean[];
}

/** A text that no message may contain. */
export const canary = "canary-3b7f1c";

/** A slot in one version, from which its inputs are created. */
interface Here {
  readonly slot: Slot;
  /** Distinguishes it from all others. */
  readonly index: number;
  readonly version: number;
  readonly variant: number;
  /** Versions up to this one with a variant other than 0. */
  readonly grown: number;
  /** Versions up to this one with a rename: a name whose deletion may be pending is never used again. */
  readonly renamed: number;
  /** Versions up to this one in which it was absent. */
  readonly gaps: number;
  /** Whether its data may be lost. */
  readonly mayLose: boolean;
  /** The slots that are in this version, by the name of their resource. */
  readonly others: ReadonlyMap<string, Slot>;
  readonly names: ReadonlyMap<Slot, string>;
}

type Inputs = Values | undefined;

const id = (name: string): Reference => ({ $of: name, get: "id" });
const output = (name: string, get: string): Reference => ({ $of: name, get });
const firstApp = "app";

/** The parent of a kind that a slot has picked, if it is in this version. */
function parentOf(
  { slot, index, others, names }: Here,
  kind: ResourceName,
  fits: (parent: Slot) => boolean = () => true,
) {
  const all = [...names.keys()].slice(0, index).filter((other) => other.kind === kind && fits(other));
  const parent = all[slot.pick % Math.max(1, all.length)];
  const name = parent && names.get(parent);
  return name !== undefined && others.has(name) ? name : undefined;
}

/** The App for resources that may be in any. */
const appOf = (here: Here): string => (here.slot.pick % 3 === 0 ? (parentOf(here, "App") ?? firstApp) : firstApp);

/** Inputs of a resource that needs a parent, or undefined without it. */
const within = (parent: string | undefined, make: (parent: string) => Inputs): Inputs =>
  parent === undefined ? undefined : make(parent);

const certificates = new Map<string, { fullchain: string; privateKey: string }>();
/** One of two certificates for a hostname. */
function certificateFor(host: string, which: number) {
  const key = `${which} ${host}`;
  const known = certificates.get(key);
  if (known) return known;
  const { fullchain, private_key: privateKey } = makeCertificate({ hosts: [host] });
  const made = { fullchain, privateKey };
  certificates.set(key, made);
  return made;
}

const bytes = (text: string, length: number): string => Buffer.from(text.padEnd(length, ".")).toString("base64");
const image = "registry.example.com/web";

/** Whether a Machine is the first one to pick its volume; it then mounts it in all versions. */
function isMounter(here: Here): boolean {
  const pickedBy = (slot: Slot, index: number): Slot | undefined => {
    if (slot.kind !== "Machine" || slot.pick % 2 === 0) return undefined;
    const volumes = [...here.names.keys()].slice(0, index).filter(({ kind }) => kind === "Volume");
    return volumes[slot.pick % Math.max(1, volumes.length)];
  };
  const mine = pickedBy(here.slot, here.index);
  const first = [...here.names.keys()].find((slot, index) => pickedBy(slot, index) === mine);
  return mine !== undefined && first === here.slot;
}

const volumeOf = (here: Here): string | undefined => (isMounter(here) ? parentOf(here, "Volume") : undefined);

function machineInputs(here: Here): Inputs {
  const { slot, variant, version, names, index } = here;
  const volume = volumeOf(here);
  // A Machine whose deletion is pending may still have its volume mounted, so its name is never reused with and without it.
  if (volume === undefined && isMounter(here)) return undefined;
  const app = volume === undefined ? appOf(here) : firstApp;
  const secrets = parentOf(here, "AppSecrets", (one) => one.pick % 3 !== 0);
  // A command needs a running Machine, even if another client stopped it.
  const mustRun = [...names.keys()].slice(index).some(({ kind }) => kind === "MachineCommand");
  const config: Values = {
    image: `${image}:1`,
    env: { TOKEN: canary },
    guest: { cpus: 1, memoryMb: 256 },
    mounts: volume === undefined ? [] : [{ volume: id(volume), path: "/data" }],
  };
  const inputs = { app: id(app), region: "ams", config, ...(mustRun ? { state: "started" } : {}) };
  const changes: readonly Values[] = [
    {},
    { config: { ...config, image: `${image}:2` } },
    { config: { ...config, env: { TOKEN: canary, A: String(version) } } },
    { cordoned: true },
    mustRun ? { memoryLimitMb: 150 } : { state: "stopped" },
    volume === undefined ? { region: "fra" } : { config: { ...config, guest: { cpus: 2, memoryMb: 512 } } },
    { config: { ...config, metadata: { role: `v${version}` } } },
    {
      config: {
        ...config,
        services: [
          {
            protocol: "tcp",
            internalPort: 8080,
            ports: [{ port: 80, handlers: ["http"] }],
            checks: [{ type: "tcp", interval: "60s" }],
          },
        ],
      },
    },
    { memoryLimitMb: 200 },
    secrets === undefined || app !== firstApp
      ? { forceDestroy: true }
      : { minSecretsVersion: output(secrets, "version") },
    { restart: { triggers: { config: String(version) } } },
    mustRun ? { onUpdateFailure: "rollback" } : { state: "suspended" },
    {
      name: `fixed-${slot.pick}-${index}`,
      ...(volume === undefined ? { region: version % 2 === 0 ? "lhr" : "fra" } : {}),
    },
    { reload: { triggers: { config: String(version) } }, config: { ...config, env: { TOKEN: canary, B: "1" } } },
  ];
  return { ...inputs, ...changes[variant % changes.length] };
}

const ipTypes = ["v6", "v4", "private_v6", "shared_v4", "egress_pair"] as const;
const extensionNames = ["pg_trgm", "citext", "hstore", "vector", "unaccent"] as const;

/** Whether a slot is the first of its kind for a place that only one can have. */
const isFirst = (here: Here, of: (here: Here) => unknown): boolean => {
  const mine = of(here);
  return ![...here.names.keys()]
    .slice(0, here.index)
    .some((slot, index) => slot.kind === here.slot.kind && of({ ...here, slot, index }) === mine);
};

/** Name of the secret of a slot, which changes after every fourth of its variants. */
const secretOf = ({ life }: Slot, index: number, version: number): string =>
  `S${index}_${life.slice(0, version + 1).filter((one) => one !== null && one % 4 === 3).length}`;

/** Secrets that were own resources in an earlier version, and now belong to the resources that take them over. */
function adoptedSecrets({ slot, version, names }: Here): Record<string, string> {
  if (slot.renames === undefined) return {};
  const gone = [...names.keys()].flatMap((other, index) =>
    other.kind === "Secret" &&
    other.pick % 3 !== 0 &&
    (other.life[version] ?? null) === null &&
    other.life.slice(0, version).some((one) => one !== null)
      ? [[secretOf(other, index, version), `${canary}-taken`]]
      : [],
  );
  return Object.fromEntries(gone) as Record<string, string>;
}

/** The inputs of each kind, or undefined if it lacks a parent in this version. */
const inputsOf: Readonly<Record<ResourceName, (here: Here) => Inputs>> = {
  App: ({ variant, index }) => [{}, { forceDestroy: true }, { name: `named-${index}` }, {}][variant % 4],
  Machine: machineInputs,
  Fleet: ({ variant, version, index }) => ({
    app: id(firstApp),
    name: `fleet-${index}`,
    regions: { ams: 2 },
    config: { image: `${image}:1`, env: { TOKEN: canary } },
    ...[
      {},
      { config: { image: `${image}:2`, env: { TOKEN: canary, A: String(version) } } },
      { regions: { ams: 1, fra: 2 }, standbys: 1 },
      { strategy: { type: "bluegreen" }, config: { image: `${image}:3`, env: { TOKEN: canary } } },
      { strategy: { type: "immediate" }, config: { image: `${image}:1`, metadata: { role: `v${version}` } } },
      { releaseCommand: ["true"], config: { image: `${image}:4`, env: { TOKEN: canary, B: String(version) } } },
    ][variant % 6],
  }),
  Volume: ({ variant, version, grown, mayLose }) => ({
    app: id(firstApp),
    region: "ams",
    sizeGb: 1 + grown,
    ...(mayLose ? { allowDataLoss: true } : {}),
    ...[
      {},
      { restartOnExtend: true },
      { snapshotRetention: 10 + version },
      { autoBackupEnabled: false },
      { name: `other_${version}` },
      { finalSnapshot: true },
    ][variant % 6],
  }),
  Secret: (here) => ({
    app: id(appOf(here)),
    name: secretOf(here.slot, here.index, here.version),
    ...(here.variant % 2 === 0
      ? { value: `${canary}-${here.variant}` }
      : { valueWo: `${canary}-unstored-${here.variant}`, valueVersion: here.version }),
  }),
  AppSecrets: (here) => {
    const appFor = (one: Here) => (one.slot.pick % 3 === 0 ? appOf(one) : firstApp);
    if (!isFirst(here, appFor)) return undefined;
    const taken = appFor(here) === firstApp ? adoptedSecrets(here) : {};
    const values = { A: `${canary}-a`, B: `${canary}-b${here.variant}`, C: `${canary}-c`, ...taken };
    const { A, ...without } = values;
    const app = id(appFor(here));
    if (here.variant % 3 === 1) return { app, valuesWo: values, valuesVersion: here.version };
    return { app, values: here.variant % 3 === 2 ? { D: A, ...without } : values };
  },
  SecretKey: ({ slot, index, variant, mayLose }) => ({
    app: id(firstApp),
    name: `K${index}`,
    type: slot.pick % 2 === 0 ? "xaes256gcm" : "hs256",
    ...(mayLose ? { allowDataLoss: true } : {}),
    ...(variant % 2 === 0 ? {} : { value: bytes(`${canary}-${variant}`, 32) }),
  }),
  Ciphertext: (here) =>
    within(
      parentOf(here, "SecretKey", ({ pick }) => pick % 2 === 0),
      (key) => ({
        app: id(firstApp),
        key: id(key),
        plaintext: bytes(`${canary}-${here.variant}`, 20),
        keyUpdatedAt: output(key, "updatedAt"),
      }),
    ),
  Signature: (here) =>
    within(
      parentOf(here, "SecretKey", ({ pick }) => pick % 2 === 1),
      (key) => ({
        app: id(firstApp),
        key: id(key),
        plaintext: bytes(`${canary}-${here.variant}`, 20),
        keyUpdatedAt: output(key, "updatedAt"),
      }),
    ),
  IpAssignment: (here) => {
    const type = ipTypes[here.slot.pick % ipTypes.length];
    const shared = (one: Here) => ipTypes[one.slot.pick % ipTypes.length] === "shared_v4";
    if (shared(here) && !isFirst(here, shared)) return undefined;
    const inRegion = type !== "private_v6" && type !== "shared_v4" && here.variant % 2 === 1;
    return { app: id(firstApp), type, ...(inRegion ? { region: "fra" } : {}) };
  },
  DeployToken: ({ variant }) => ({ app: id(firstApp), expiry: "720h", rotationTriggers: { month: String(variant) } }),
  MachineMetadata: (here) =>
    within(parentOf(here, "Machine"), (machine) =>
      isFirst(here, (one) => parentOf(one, "Machine"))
        ? { app: output(machine, "app"), machine: id(machine), values: { team: `t${here.variant}` }, adopt: true }
        : undefined,
    ),
  MachineCommand: (here) =>
    within(parentOf(here, "Machine"), (machine) => ({
      app: output(machine, "app"),
      machine: id(machine),
      create: ["echo", "hello"],
      triggers: { release: String(here.variant) },
    })),
  VolumeSnapshot: (here) =>
    within(parentOf(here, "Volume"), (volume) => ({
      app: id(firstApp),
      volume: id(volume),
      triggers: { release: String(here.variant) },
    })),
  AcmeCertificate: ({ index }) => ({ app: id(firstApp), hostname: `h${index}.example.com` }),
  CertificateValidation: (here) =>
    within(parentOf(here, "AcmeCertificate"), (certificate) =>
      isFirst(here, (one) => parentOf(one, "AcmeCertificate"))
        ? { app: id(firstApp), hostname: output(certificate, "hostname"), triggers: { t: String(here.variant) } }
        : undefined,
    ),
  CustomCertificate: ({ index, variant, version }) => {
    const hostname = `own${index}.example.com`;
    const { fullchain, privateKey } = certificateFor(hostname, variant % 2);
    const key = variant % 3 === 1 ? { privateKeyWo: privateKey, privateKeyVersion: version } : { privateKey };
    return { app: id(firstApp), hostname, fullchain, ...key };
  },
  PostgresCluster: ({ slot, index, variant, gaps, mayLose }) => ({
    region: "fra",
    plan: variant % 4 === 3 ? "starter" : "basic",
    // One with a fixed name is deleted before its replacement is created.
    ...(slot.pick % 2 === 1 ? { name: `pg-${index}-${gaps}` } : {}),
    ...(mayLose ? { deletionProtection: false } : {}),
  }),
  PostgresDatabase: (here) =>
    within(parentOf(here, "PostgresCluster"), (cluster) => ({
      cluster: id(cluster),
      name: `db${here.index}_${here.renamed}`,
      ...(here.mayLose ? { allowDataLoss: true } : {}),
    })),
  PostgresUser: (here) =>
    within(parentOf(here, "PostgresCluster"), (cluster) => ({
      cluster: id(cluster),
      username: `u${here.index}`,
      role: here.variant % 2 === 0 ? "writer" : "reader",
      ...(here.variant % 3 === 2 ? { rotationTriggers: { t: String(here.version) } } : {}),
    })),
  PostgresExtension: (here) => {
    const nameOf = ({ index }: Here) => extensionNames[index % extensionNames.length];
    const isOne = isFirst(here, (one) => `${nameOf(one)} ${parentOf(one, "PostgresDatabase")}`);
    return within(isOne ? parentOf(here, "PostgresDatabase") : undefined, (database) => ({
      cluster: output(database, "cluster"),
      database: id(database),
      name: nameOf(here),
    }));
  },
  PostgresBackup: (here) =>
    within(parentOf(here, "PostgresCluster"), (cluster) => ({
      cluster: id(cluster),
      triggers: { t: String(here.variant) },
    })),
  PostgresAttachment: (here) =>
    within(parentOf(here, "PostgresCluster"), (cluster) =>
      isFirst(here, (one) => parentOf(one, "PostgresCluster"))
        ? { cluster: id(cluster), app: id(firstApp), secretName: `DB_${here.index}_${here.variant % 2}` }
        : undefined,
    ),
};

const steady: readonly (number | null)[] = Array.from({ length: versions }, () => 0);

/** The parent added before a slot that needs it; sometimes a cluster gets another plan in one of its versions. */
function parentFor(slot: Slot, kind: ResourceName): Slot {
  if (kind !== "PostgresCluster") return { kind, pick: keyPick(slot), life: steady };
  const life = slot.pick % 3 === 0 ? steady.map((variant, version) => (version === 0 ? variant : 3)) : steady;
  return { kind, pick: slot.pick % 2, life };
}

/** The slots, with all required parents before them. */
function completed(slots: readonly Slot[]): Slot[] {
  const all: Slot[] = [];
  const add = (slot: Slot): void => {
    const parent = kinds[slot.kind].needs;
    const fits = (other: Slot) => other.kind === parent && (parent !== "SecretKey" || other.pick % 2 === keyPick(slot));
    if (parent !== undefined && !all.some(fits)) add(parentFor(slot, parent));
    all.push(slot);
  };
  slots.forEach(add);
  return all;
}

const keyPick = ({ kind }: Slot): number => (kind === "Signature" ? 1 : 0);

/** Names of the resource of a slot, the last one first, and how many of the previous ones are aliases of it. */
function namesOf({ kind, renames = [] }: Slot, index: number, version: number) {
  const names = [`${kind.toLowerCase()}${index}`];
  let aliases = 0;
  for (const renaming of renames.slice(0, version + 1)) {
    if (renaming === null) continue;
    names.unshift(`${kind.toLowerCase()}${index}_${names.length}`);
    aliases = renaming === "alias" || !isKind(kind, "renamed") ? aliases + 1 : 0;
  }
  return { name: names[0] ?? "", aliases: names.slice(1, 1 + aliases) };
}

/** Inputs that name a parent. */
const parents = ["app", "machine", "volume", "key", "cluster", "database"];

function optionsOf({ kind, option, isGuarded }: Slot, mayLose: boolean, isStrict: boolean): Partial<Declared> {
  if (option === "protect") return { protect: !mayLose };
  if (option === "retain" && isKind(kind, "retained")) return { retainOnDelete: !mayLose };
  // A resource replaced together with its parent is not checked: the engine follows the options given here.
  if (option === "strict" && isGuarded === undefined) return { replaceOnChanges: parents };
  // These cannot be deleted while they contain something or are mounted. Strict dependencies are deleted first as well.
  if ((option === "first" || isStrict) && kind !== "App" && kind !== "Volume") return { deleteBeforeReplace: true };
  return {};
}

/** The program of a version; with `isAllowed` it allows every loss. */
export function programOf({ slots, apps = [] }: Design, version: number, isAllowed = false): Declared[] {
  const all = completed(slots);
  const names = new Map(all.map((slot, index) => [slot, namesOf(slot, index, version).name]));
  const others = new Map<string, Slot>();
  const isStrict = slots.some(({ option }) => option === "strict");
  const moves = apps.slice(0, version + 1).filter(Boolean).length;
  const isKept = ({ kind, isGuarded, option }: Slot) =>
    kind === "Volume" && (isGuarded !== undefined || option === "retain" || option === "protect");
  const program: Declared[] = [
    {
      type: "App",
      name: firstApp,
      inputs: {
        ...(moves === 0 ? {} : { name: `first-${moves}` }),
        // An App with volumes is replaced only if it allows their loss.
        ...(isAllowed || !all.some(isKept) ? { forceDestroy: true } : {}),
      },
    },
  ];
  for (const [index, slot] of all.entries()) {
    const variant = slot.life[version] ?? null;
    const { name, aliases } = namesOf(slot, index, version);
    if (variant === null) continue;
    const mayLose = isAllowed || slot.isGuarded === undefined;
    const past = slot.life.slice(0, version + 1);
    const so = past.filter((one) => one !== null);
    const grown = so.filter((one) => one > 0).length;
    const renamed = so.filter((one) => one % 4 === 3).length;
    const gaps = past.length - so.length;
    const here = { slot, index, version, variant, grown, renamed, gaps, mayLose, others, names };
    const inputs = inputsOf[slot.kind](here);
    if (inputs === undefined) continue;
    others.set(name, slot);
    const options = { ...optionsOf(slot, isAllowed, isStrict), ...(aliases.length > 0 ? { aliases } : {}) };
    program.push({ type: slot.kind, name, inputs, ...options });
  }
  return program;
}

const oneOf = (drawn: readonly ResourceName[]): fc.Arbitrary<ResourceName> =>
  fc.oneof(...drawn.map((name) => ({ arbitrary: fc.constant(name), weight: kinds[name].weight })));

const life = fc.array(fc.oneof({ arbitrary: fc.nat(13), weight: 6 }, { arbitrary: fc.constant(null), weight: 1 }), {
  minLength: versions,
  maxLength: versions,
});

const inVersions = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(arbitrary, { minLength: versions, maxLength: versions });

const renames = inVersions(
  fc.oneof(
    { arbitrary: fc.constant(null), weight: 1 },
    { arbitrary: fc.constantFrom<Renaming>("bare", "alias"), weight: 1 },
  ),
);

const slotOf = (drawn: readonly ResourceName[]): fc.Arbitrary<Slot> =>
  fc
    .record({
      kind: oneOf(drawn),
      pick: fc.nat(11),
      life,
      isGuarded: onceIn(3, fc.constant(true as const)),
      renames: onceIn(2, renames),
      option: onceIn(6, fc.constantFrom("protect" as const, "retain", "strict", "first")),
    })
    .map(withoutUndefined);

function withoutUndefined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** Programs of these kinds of resources. */
export const designArbitrary = (drawn: readonly ResourceName[] = kindNames): fc.Arbitrary<Design> =>
  fc
    .record({
      slots: fc.array(slotOf(drawn), { minLength: 1, maxLength: 8, size: "max" }),
      apps: onceIn(3, inVersions(fc.constantFrom(false, false, true))),
    })
    .map(withoutUndefined);
