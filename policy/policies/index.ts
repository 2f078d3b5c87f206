// Every policy of the pack, in the order they are reported.
import type { Policies } from "@pulumi/policy";
import { allowedMachineSizes } from "./allowedMachineSizes.ts";
import { allowedRegions } from "./allowedRegions.ts";
import { allowedRegistries } from "./allowedRegistries.ts";
import { autostop } from "./autostop.ts";
import { budget } from "./budget.ts";
import { certificatesNotExpiring } from "./certificatesNotExpiring.ts";
import { certificatesValidated } from "./certificatesValidated.ts";
import { databaseBackups } from "./databaseBackups.ts";
import { databasePlan } from "./databasePlan.ts";
import { databaseProtection } from "./databaseProtection.ts";
import { deployTokenExpiry } from "./deployTokenExpiry.ts";
import { gracefulStop } from "./gracefulStop.ts";
import { healthChecks } from "./healthChecks.ts";
import { httpsForced } from "./httpsForced.ts";
import { imagesPinned } from "./imagesPinned.ts";
import { knownPorts } from "./knownPorts.ts";
import { noDataLossSwitches } from "./noDataLossSwitches.ts";
import { noPublicIpv4 } from "./noPublicIpv4.ts";
import { noSecretsInEnv } from "./noSecretsInEnv.ts";
import { productionProtected } from "./productionProtected.ts";
import { redundancy } from "./redundancy.ts";
import { requiredMetadata } from "./requiredMetadata.ts";
import { restartPolicy } from "./restartPolicy.ts";
import { safeRollouts } from "./safeRollouts.ts";
import { volumesEncrypted } from "./volumesEncrypted.ts";
import { volumeSnapshots } from "./volumeSnapshots.ts";

/**
 * The policies of the pack, for a pack of your own, which then configures them.
 * @param now the current time, for the expiry of certificates
 */
export const machinesPolicies = (now: () => Date = () => new Date()): Policies => [
  imagesPinned,
  allowedRegistries,
  allowedRegions,
  allowedMachineSizes,
  budget(),
  noSecretsInEnv,
  healthChecks,
  safeRollouts,
  redundancy,
  restartPolicy,
  gracefulStop,
  noPublicIpv4,
  httpsForced,
  knownPorts,
  certificatesValidated,
  certificatesNotExpiring(now),
  volumesEncrypted,
  volumeSnapshots,
  databaseProtection,
  databasePlan,
  databaseBackups,
  productionProtected,
  noDataLossSwitches,
  requiredMetadata,
  deployTokenExpiry,
  autostop,
];
