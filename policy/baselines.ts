// The enforcement level of each policy: in development, in production, and with every rule mandatory.
import type { EnforcementLevel, PolicyPackConfig } from "@pulumi/policy";

/** A ready-made configuration of the pack. */
export type BaselineName = "development" | "production" | "strict";

/** Level of a policy, and settings that are not its defaults. */
type BaselineEntry =
  | EnforcementLevel
  | { readonly enforcementLevel: EnforcementLevel; readonly [setting: string]: unknown };

/** Levels by policy: development, production, strict. */
const levels: Readonly<Record<string, readonly [BaselineEntry, BaselineEntry, BaselineEntry]>> = {
  "images-pinned": ["advisory", "mandatory", "mandatory"],
  // These three and the budget accept everything until they are configured.
  "allowed-registries": ["mandatory", "mandatory", "mandatory"],
  "allowed-regions": ["mandatory", "mandatory", "mandatory"],
  "allowed-machine-sizes": ["mandatory", "mandatory", "mandatory"],
  budget: ["mandatory", "mandatory", "mandatory"],
  "no-secrets-in-env": ["mandatory", "mandatory", "mandatory"],
  "health-checks": ["advisory", "mandatory", "mandatory"],
  "safe-rollouts": ["advisory", "mandatory", "mandatory"],
  redundancy: [
    "disabled",
    { enforcementLevel: "advisory", apps: ["*"] },
    { enforcementLevel: "mandatory", apps: ["*"], regions: 2 },
  ],
  "restart-policy": ["advisory", "remediate", "mandatory"],
  "graceful-stop": ["disabled", "advisory", "mandatory"],
  "no-public-ipv4": ["disabled", { enforcementLevel: "advisory", allow: ["shared_v4"] }, "mandatory"],
  "https-forced": ["advisory", "remediate", "mandatory"],
  "known-ports": ["advisory", "mandatory", "mandatory"],
  "certificates-validated": ["disabled", "advisory", "mandatory"],
  "certificates-not-expiring": ["advisory", "mandatory", { enforcementLevel: "mandatory", days: 30 }],
  "volumes-encrypted": ["advisory", "mandatory", "mandatory"],
  "volume-snapshots": ["disabled", "remediate", { enforcementLevel: "mandatory", minDays: 14 }],
  "database-protection": ["disabled", "mandatory", "mandatory"],
  "database-plan": ["disabled", "mandatory", { enforcementLevel: "mandatory", minimum: "launch" }],
  "database-backups": ["disabled", "mandatory", "mandatory"],
  "production-protected": ["disabled", "mandatory", "mandatory"],
  "no-data-loss-switches": ["disabled", "mandatory", "mandatory"],
  "required-metadata": ["mandatory", "mandatory", "mandatory"],
  "deploy-token-expiry": ["advisory", "mandatory", { enforcementLevel: "mandatory", maxHours: 168 }],
  autostop: ["advisory", "disabled", "disabled"],
  exceptions: ["advisory", "advisory", "advisory"],
};

const baseline = (index: 0 | 1 | 2): PolicyPackConfig =>
  Object.fromEntries(Object.entries(levels).map(([policy, entries]) => [policy, entries[index]])) as PolicyPackConfig;

/**
 * The baselines, for a pack of your own: `policyPack(name, args, baselines.production)`. `baselines/` has them as files for
 * `--policy-pack-config`.
 */
export const baselines: Readonly<Record<BaselineName, PolicyPackConfig>> = {
  development: baseline(0),
  production: baseline(1),
  strict: baseline(2),
};
