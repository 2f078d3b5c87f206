// Every function, by its name in programs.
import type { MachinesFunction } from "../core/function.ts";
import { checkCertificate } from "./checkCertificate.ts";
import { decrypt } from "./decrypt.ts";
import { getApp } from "./getApp.ts";
import { getApps } from "./getApps.ts";
import { getCertificate } from "./getCertificate.ts";
import { getCertificates } from "./getCertificates.ts";
import { getIpAssignments } from "./getIpAssignments.ts";
import { getMachine } from "./getMachine.ts";
import { getMachineEvents } from "./getMachineEvents.ts";
import { getMachineLease } from "./getMachineLease.ts";
import { getMachineMemory } from "./getMachineMemory.ts";
import { getMachineMetadata } from "./getMachineMetadata.ts";
import { getMachineProcesses } from "./getMachineProcesses.ts";
import { getMachines } from "./getMachines.ts";
import { getMachineVersions } from "./getMachineVersions.ts";
import { getOrgMachines } from "./getOrgMachines.ts";
import { getOrgVolumes } from "./getOrgVolumes.ts";
import { getPlacements } from "./getPlacements.ts";
import { getPostgresActiveQueries } from "./getPostgresActiveQueries.ts";
import { getPostgresBackups } from "./getPostgresBackups.ts";
import { getPostgresCluster } from "./getPostgresCluster.ts";
import { getPostgresClusters } from "./getPostgresClusters.ts";
import { getPostgresCredentials } from "./getPostgresCredentials.ts";
import { getPostgresDatabases } from "./getPostgresDatabases.ts";
import { getPostgresExtensions } from "./getPostgresExtensions.ts";
import { getPostgresSlowQueries } from "./getPostgresSlowQueries.ts";
import { getPostgresUsers } from "./getPostgresUsers.ts";
import { getRegions } from "./getRegions.ts";
import { getSecret } from "./getSecret.ts";
import { getSecretKey } from "./getSecretKey.ts";
import { getSecretKeys } from "./getSecretKeys.ts";
import { getSecrets } from "./getSecrets.ts";
import { getVolume } from "./getVolume.ts";
import { getVolumes } from "./getVolumes.ts";
import { getVolumeSnapshots } from "./getVolumeSnapshots.ts";
import { verify } from "./verify.ts";
import { waitForMachine } from "./waitForMachine.ts";

/** The registry both bindings, the schema and the tests are made from. */
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
