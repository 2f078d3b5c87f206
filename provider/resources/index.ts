// Every resource type, by name.
import type { Resource } from "../core/resource.ts";
import { acmeCertificate } from "./acmeCertificate.ts";
import { app } from "./app.ts";
import { appSecrets } from "./appSecrets.ts";
import { certificateValidation } from "./certificateValidation.ts";
import { ciphertext } from "./ciphertext.ts";
import { customCertificate } from "./customCertificate.ts";
import { deployToken } from "./deployToken.ts";
import { ipAssignment } from "./ipAssignment.ts";
import { machine } from "./machine.ts";
import { machineCommand } from "./machineCommand.ts";
import { machineMetadata } from "./machineMetadata.ts";
import { postgresAttachment } from "./postgresAttachment.ts";
import { postgresBackup } from "./postgresBackup.ts";
import { postgresCluster } from "./postgresCluster.ts";
import { postgresDatabase } from "./postgresDatabase.ts";
import { postgresExtension } from "./postgresExtension.ts";
import { postgresUser } from "./postgresUser.ts";
import { secret } from "./secret.ts";
import { secretKey } from "./secretKey.ts";
import { signature } from "./signature.ts";
import { volume } from "./volume.ts";
import { volumeSnapshot } from "./volumeSnapshot.ts";

/** The registry both bindings, the schema and the tests are made from. */
export const resources: Readonly<Record<string, Resource>> = {
  AcmeCertificate: acmeCertificate,
  App: app,
  AppSecrets: appSecrets,
  CertificateValidation: certificateValidation,
  Ciphertext: ciphertext,
  CustomCertificate: customCertificate,
  DeployToken: deployToken,
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
};
