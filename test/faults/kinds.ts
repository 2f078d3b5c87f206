// What the campaign knows of each resource type, beside the inputs that programs.ts gives it.
import type { ResourceName } from "../../provider/registry.ts";

/** How the campaign treats resources of a type. */
export interface Kind {
  /** How often programs draw it. */
  readonly weight: number;
  /** The parent that it requires, beside the App; a fitting one is added before it. */
  readonly needs?: ResourceName;
  /** The input that guards its data: at this value, it may be lost. */
  readonly losable?: readonly [input: "allowDataLoss" | "deletionProtection", value: boolean];
  readonly is: readonly Trait[];
}

/**
 * - `written`: it writes values by name and leaves no trace when interrupted: an up writes the same again.
 * - `importable`: it is imported. Reads of the others return too little, or they guard their data until the next up.
 * - `recreated`: the next up creates it again when the state has forgotten it.
 * - `forcible`: a second one can be created while the first one exists.
 * - `renamed`: it is renamed without an alias too, as two can exist under one name, or it has no name.
 * - `retained`: `retainOnDelete` is drawn for it.
 */
export type Trait = "written" | "importable" | "recreated" | "forcible" | "renamed" | "retained";

/** Every type. */
export const kinds: Readonly<Record<ResourceName, Kind>> = {
  App: { weight: 2, is: ["importable", "forcible"] },
  Machine: { weight: 10, is: ["importable", "forcible"] },
  Fleet: { weight: 1, is: ["importable"] },
  Volume: {
    weight: 6,
    losable: ["allowDataLoss", true],
    is: ["importable", "recreated", "forcible", "renamed", "retained"],
  },
  Secret: { weight: 3, is: ["written", "importable", "recreated", "forcible", "renamed", "retained"] },
  AppSecrets: { weight: 3, is: ["written", "recreated", "forcible", "renamed"] },
  SecretKey: { weight: 1, losable: ["allowDataLoss", true], is: [] },
  Ciphertext: { weight: 1, needs: "SecretKey", is: ["importable", "forcible", "renamed"] },
  Signature: { weight: 1, needs: "SecretKey", is: ["importable", "forcible", "renamed"] },
  IpAssignment: { weight: 4, is: ["importable"] },
  DeployToken: { weight: 1, is: ["importable", "forcible", "renamed"] },
  MachineMetadata: { weight: 2, needs: "Machine", is: ["recreated", "forcible", "renamed"] },
  MachineCommand: { weight: 1, needs: "Machine", is: ["importable", "forcible", "renamed"] },
  VolumeSnapshot: { weight: 1, needs: "Volume", is: ["importable", "forcible", "renamed"] },
  AcmeCertificate: { weight: 1, is: ["importable"] },
  CertificateValidation: { weight: 1, needs: "AcmeCertificate", is: ["importable"] },
  CustomCertificate: { weight: 1, is: [] },
  PostgresCluster: { weight: 2, losable: ["deletionProtection", false], is: ["forcible"] },
  PostgresDatabase: {
    weight: 2,
    needs: "PostgresCluster",
    losable: ["allowDataLoss", true],
    is: ["importable"],
  },
  PostgresUser: { weight: 1, needs: "PostgresCluster", is: ["importable"] },
  PostgresExtension: { weight: 1, needs: "PostgresDatabase", is: ["importable"] },
  PostgresBackup: { weight: 1, needs: "PostgresCluster", is: ["importable", "forcible", "renamed"] },
  PostgresAttachment: { weight: 2, needs: "PostgresCluster", is: ["written", "recreated", "forcible", "renamed"] },
};

/** Whether the campaign treats a type so. */
export const isKind = (type: ResourceName, trait: Trait): boolean => kinds[type].is.includes(trait);

/** The names of all types. Their order is part of what a seed draws. */
export const kindNames = Object.keys(kinds) as ResourceName[];
