// Every resource type, every component and every function, by name.
import type { Component } from "./core/component.ts";
import type { MachinesFunction } from "./core/function.ts";
import type { Resource } from "./core/resource.ts";
import { app } from "./apps/app.ts";
import { deployToken } from "./apps/deployToken.ts";
import { getApp } from "./apps/getApp.ts";
import { getApps } from "./apps/getApps.ts";
import { getIpAssignments } from "./apps/getIpAssignments.ts";
import { ipAssignment } from "./apps/ipAssignment.ts";
import { acmeCertificate } from "./certificates/acmeCertificate.ts";
import { certificateValidation } from "./certificates/certificateValidation.ts";
import { checkCertificate } from "./certificates/checkCertificate.ts";
import { customCertificate } from "./certificates/customCertificate.ts";
import { getCertificate } from "./certificates/getCertificate.ts";
import { getCertificates } from "./certificates/getCertificates.ts";
import { fleet } from "./fleets/fleet.ts";
import { getMachine } from "./machines/getMachine.ts";
import { getMachineEvents } from "./machines/getMachineEvents.ts";
import { getMachineLease } from "./machines/getMachineLease.ts";
import { getMachineMemory } from "./machines/getMachineMemory.ts";
import { getMachineMetadata } from "./machines/getMachineMetadata.ts";
import { getMachineProcesses } from "./machines/getMachineProcesses.ts";
import { getMachineVersions } from "./machines/getMachineVersions.ts";
import { getMachines } from "./machines/getMachines.ts";
import { getOrgMachines } from "./machines/getOrgMachines.ts";
import { getPlacements } from "./machines/getPlacements.ts";
import { machine } from "./machines/machine.ts";
import { machineCommand } from "./machines/machineCommand.ts";
import { machineMetadata } from "./machines/machineMetadata.ts";
import { waitForMachine } from "./machines/waitForMachine.ts";
import { getPostgresActiveQueries } from "./postgres/getPostgresActiveQueries.ts";
import { getPostgresBackups } from "./postgres/getPostgresBackups.ts";
import { getPostgresCluster } from "./postgres/getPostgresCluster.ts";
import { getPostgresClusters } from "./postgres/getPostgresClusters.ts";
import { getPostgresCredentials } from "./postgres/getPostgresCredentials.ts";
import { getPostgresDatabases } from "./postgres/getPostgresDatabases.ts";
import { getPostgresExtensions } from "./postgres/getPostgresExtensions.ts";
import { getPostgresSlowQueries } from "./postgres/getPostgresSlowQueries.ts";
import { getPostgresUsers } from "./postgres/getPostgresUsers.ts";
import { postgresAttachment } from "./postgres/postgresAttachment.ts";
import { postgresBackup } from "./postgres/postgresBackup.ts";
import { postgresCluster } from "./postgres/postgresCluster.ts";
import { postgresDatabase } from "./postgres/postgresDatabase.ts";
import { postgresExtension } from "./postgres/postgresExtension.ts";
import { postgresUser } from "./postgres/postgresUser.ts";
import { release } from "./releases/release.ts";
import { appSecrets } from "./secrets/appSecrets.ts";
import { ciphertext } from "./secrets/ciphertext.ts";
import { decrypt } from "./secrets/decrypt.ts";
import { getSecret } from "./secrets/getSecret.ts";
import { getSecretKey } from "./secrets/getSecretKey.ts";
import { getSecretKeys } from "./secrets/getSecretKeys.ts";
import { getSecrets } from "./secrets/getSecrets.ts";
import { secret } from "./secrets/secret.ts";
import { secretKey } from "./secrets/secretKey.ts";
import { signature } from "./secrets/signature.ts";
import { verify } from "./secrets/verify.ts";
import { getRegions } from "./shared/getRegions.ts";
import { getOrgVolumes } from "./volumes/getOrgVolumes.ts";
import { getVolume } from "./volumes/getVolume.ts";
import { getVolumeSnapshots } from "./volumes/getVolumeSnapshots.ts";
import { getVolumes } from "./volumes/getVolumes.ts";
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
