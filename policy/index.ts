// pulumi-machines-policy: the policies, and the helpers for policies of your own.
export { baselines, type BaselineName } from "./baselines.ts";
export type { Exception } from "./core/exceptions.ts";
export type { Each } from "./core/unknown.ts";
export {
  resourceName,
  validateStack,
  type Check,
  type CheckArgs,
  type Repair,
  type StackCheckArgs,
  type StackResource,
} from "./core/validate.ts";
export { guestOf, isJob, serves } from "./core/machine.ts";
export { policyPack } from "./pack.ts";
export { machinesPolicies } from "./policies/index.ts";
export { prices, type Prices } from "../api/prices.ts";
export * from "./resources.ts";
export * from "./validators.ts";
