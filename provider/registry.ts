// Every resource type, every component and every function, by name.
import type { Component } from "./core/component.ts";
import type { MachinesFunction } from "./core/function.ts";
import type { Resource } from "./core/resource.ts";
import { getApp, getApps, getIpAssignments } from "./apps/functions.ts";
import { app } from "./apps/app.ts";
import { deployToken } from "./apps/deployToken.ts";
import { ipAssignment } from "./apps/ipAssignment.ts";
import { checkCertificate, getCertificate, getCertificates } from "./certificates/functions.ts";
import { acmeCertificate } from "./certificates/acmeCertificate.ts";
import { certificateValidation } from "./certificates/certificateValidation.ts";
import { customCertificate } from "./certificates/customCertificate.ts";
import { fleet } from "./fleets/fleet.ts";
import {
  getMachine,
  getMachineEvents,
  getMachineLease,
  getMachineMemory,
  getMachineMetadata,
  getMachineProcesses,
  getMachines,
  getMachineVersions,
  getOrgMachines,
  getPlacements,
  getRegions,
  waitForMachine,
} from "./machines/functions.ts";
import { machine } from "./machines/machine.ts";
import { machineCommand } from "./machines/machineCommand.ts";
import { machineMetadata } from "./machines/machineMetadata.ts";
import {
  getPostgresActiveQueries,
  getPostgresBackups,
  getPostgresCluster,
  getPostgresClusters,
  getPostgresCredentials,
  getPostgresDatabases,
  getPostgresExtensions,
  getPostgresSlowQueries,
  getPostgresUsers,
} from "./postgres/functions.ts";
import { postgresAttachment } from "./postgres/postgresAttachment.ts";
import { postgresBackup } from "./postgres/postgresBackup.ts";
import { postgresCluster } from "./postgres/postgresCluster.ts";
import { postgresDatabase } from "./postgres/postgresDatabase.ts";
import { postgresExtension } from "./postgres/postgresExtension.ts";
import { postgresUser } from "./postgres/postgresUser.ts";
import { release } from "./releases/release.ts";
import { decrypt, getSecret, getSecretKey, getSecretKeys, getSecrets, verify } from "./secrets/functions.ts";
import { appSecrets } from "./secrets/appSecrets.ts";
import { ciphertext } from "./secrets/ciphertext.ts";
import { secret } from "./secrets/secret.ts";
import { secretKey } from "./secrets/secretKey.ts";
import { signature } from "./secrets/signature.ts";
import { getOrgVolumes, getVolume, getVolumes, getVolumeSnapshots } from "./volumes/functions.ts";
import { volume } from "./volumes/volume.ts";
import { volumeSnapshot } from "./volumes/volumeSnapshot.ts";

const types = {
  AcmeCertificate: acmeCertificate,
  App: app,
  AppSecrets: appSecrets,
  CertificateValidation: certificateValidation,
  Ciphertext: ciphertext,
  CustomCertificate: customCertificate,
  DeployToken: deployToken,
  Fleet: fleet,
  IpAssignment: ipAssignment,
  Machine: machine,
  MachineCommand: machineCommand,
  MachineMetadata: machineMetadata,
  PostgresAttachment: postgresAttachment,
  PostgresBackup: postgresBackup,
  PostgresCluster: postgresCluster,
  PostgresDatabase: postgresDatabase,
  PostgresExtension: postgresExtension,
  PostgresUser: postgresUser,
  Secret: secret,
  SecretKey: secretKey,
  Signature: signature,
  Volume: volume,
  VolumeSnapshot: volumeSnapshot,
} satisfies Readonly<Record<string, Resource>>;

/** Name of a resource type. */
export type ResourceName = keyof typeof types;

/** Every resource type. Both bindings, the schema, the docs and the tests are derived from it. */
export const resources: Readonly<Record<string, Resource>> = types;

/** Every component that the plugin constructs. */
export const components: Readonly<Record<string, Component>> = {
  Release: release,
};

/** Every function. */
export const functions: Readonly<Record<string, MachinesFunction>> = {
  checkCertificate,
  decrypt,
  getApp,
  getApps,
  getCertificate,
  getCertificates,
  getIpAssignments,
  getMachine,
  getMachineEvents,
  getMachineLease,
  getMachineMemory,
  getMachineMetadata,
  getMachineProcesses,
  getMachines,
  getMachineVersions,
  getOrgMachines,
  getOrgVolumes,
  getPlacements,
  getPostgresActiveQueries,
  getPostgresBackups,
  getPostgresCluster,
  getPostgresClusters,
  getPostgresCredentials,
  getPostgresDatabases,
  getPostgresExtensions,
  getPostgresSlowQueries,
  getPostgresUsers,
  getRegions,
  getSecret,
  getSecretKey,
  getSecretKeys,
  getSecrets,
  getVolume,
  getVolumes,
  getVolumeSnapshots,
  verify,
  waitForMachine,
};
