// Starts a pack: with exceptions for every policy, and without misspelt configuration.
import { PolicyPack, type Policies, type PolicyPackArgs, type PolicyPackConfig } from "@pulumi/policy";
import { AnalyzerService } from "@pulumi/pulumi/proto/analyzer_grpc_pb.js";
import type { ConfigureAnalyzerRequest } from "@pulumi/pulumi/proto/analyzer_pb.js";
import { baselines } from "./baselines.ts";
import { withExceptions } from "./core/exceptions.ts";
import { settingNames, unknownName } from "./core/unknownName.ts";

/**
 * Starts a policy pack, like `new PolicyPack`. Every policy accepts `exceptions`, and each exception is reported.
 * Configuration of an unknown policy or setting is refused.
 * @param name name of the pack
 * @param args its policies: those of `machinesPolicies()` or some of them, and your own
 * @param config the configuration unless `--policy-pack-config` overrides it: one of the `baselines`; entries for
 *   policies that the pack does not have are ignored
 */
export function policyPack(name: string, args: PolicyPackArgs, config: PolicyPackConfig = {}): void {
  const policies = withExceptions(args.policies);
  const names = ["all", ...policies.map((policy) => policy.name)];
  const isOurs = (policy: string): boolean => Object.hasOwn(baselines.production, policy);
  const own = Object.entries(config).filter(([policy]) => names.includes(policy) || !isOurs(policy));
  refuseUnknown(args.policies, names);
  void new PolicyPack(name, { ...args, policies }, Object.fromEntries(own));
}

/**
 * Refuses unknown configuration. Pulumi would ignore it, and with it the intended level or limit. Pulumi's SDK gives each
 * policy only its own configuration, so the check is at the engine's call.
 */
function refuseUnknown(policies: Policies, names: readonly string[]): void {
  const call = AnalyzerService.configure as { requestDeserialize: (bytes: Buffer) => ConfigureAnalyzerRequest };
  const { requestDeserialize } = call;
  call.requestDeserialize = (bytes) => {
    const request = requestDeserialize(bytes);
    const problem = problemIn(request, policies, names);
    // An error thrown here would reach the user without its message; the SDK answers with one that it meets itself.
    if (problem !== undefined)
      request.getPolicyconfigMap = () => {
        throw withoutStack(problem);
      };
    return request;
  };
}

/** The first unknown policy or setting in a configuration. */
function problemIn(
  request: ConfigureAnalyzerRequest,
  policies: Policies,
  names: readonly string[],
): string | undefined {
  for (const [name, config] of request.getPolicyconfigMap().entries()) {
    if (!names.includes(name)) return `the configuration of the pack has ${unknownName(name, names)}`;
    const schema = policies.find((policy) => policy.name === name)?.configSchema;
    if (schema === undefined) continue; // it may read any setting
    const known = settingNames(schema.properties);
    for (const setting of Object.keys(config.getProperties()?.toJavaScript() ?? {}))
      if (!known.includes(setting)) return `the configuration of ${name} has ${unknownName(setting, known)}`;
  }
  return undefined;
}

/** An error of which the SDK passes on the message alone: it quotes the stack. */
function withoutStack(message: string): Error {
  const error = new TypeError(message);
  error.stack = message;
  return error;
}
