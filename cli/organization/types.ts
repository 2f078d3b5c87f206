// How a program is written for resources of each type. A new type does not compile without an entry.
import type { ResourceName } from "../../provider/registry.ts";

/** How resources of a type are written. */
interface Written {
  /** Required inputs that the service never shows. They come from the configuration, and their changes are ignored. */
  readonly unreadable?: readonly string[];
  /** Inputs that may differ from row to row of a loop; without any, the type is in no loop. */
  readonly varying?: readonly string[];
}

/** The types in the order of a section: a resource comes after those that it refers to. */
const types: Readonly<Record<ResourceName, Written>> = {
  App: {},
  PostgresCluster: {},
  IpAssignment: {},
  AcmeCertificate: { varying: ["hostname"] },
  CustomCertificate: { unreadable: ["fullchain", "privateKey"] },
  SecretKey: { varying: ["name"] },
  Secret: { unreadable: ["value"], varying: ["name", "value"] },
  Volume: { varying: ["region"] },
  Machine: { varying: ["name", "region"] },
  Fleet: {},
  VolumeSnapshot: {},
  PostgresDatabase: { varying: ["name"] },
  PostgresUser: {},
  PostgresExtension: {},
  PostgresAttachment: {},
  PostgresBackup: {},
  // No list shows the objects of these, so they are in no program that is written.
  AppSecrets: {},
  CertificateValidation: {},
  Ciphertext: {},
  DeployToken: {},
  MachineCommand: {},
  MachineMetadata: {},
  Signature: {},
};

const written: ReadonlyMap<string, Written> = new Map(Object.entries(types));
const names = [...written.keys()];

/** The place of a type in a section. */
export const rankOf = (type: string): number => names.indexOf(type);

/** Required inputs of a type that the service never shows. */
export const unreadableOf = (type: string): readonly string[] => written.get(type)?.unreadable ?? [];

/** Inputs of a type that may differ from row to row of a loop; undefined if it is in no loop. */
export const varyingOf = (type: string): readonly string[] | undefined => written.get(type)?.varying;

/** The type that an input refers to. The input has its name: `cluster` is the id of a PostgresCluster. */
export const typeNamed = (input: string): string | undefined =>
  names.find((type) => type.replace(/^Postgres/, "").toLowerCase() === input.toLowerCase());
