// A pack that is started: with exceptions for every policy, and configuration that is not misspelt.
import { PolicyPack, type PolicyPackArgs, type PolicyPackConfig } from "@pulumi/policy";
import { AnalyzerService } from "@pulumi/pulumi/proto/analyzer_grpc_pb.js";
import type { ConfigureAnalyzerRequest } from "@pulumi/pulumi/proto/analyzer_pb.js";
import { nearest } from "../provider/core/nearest.ts";
import { withExceptions } from "./core/exceptions.ts";

/**
 * Starts a policy pack, as `new PolicyPack` does, in which every policy takes `exceptions`, each is reported, and
 * configuration of a policy that there is not is refused.
 * @param name name of the pack
 * @param args its policies: those of `machinesPolicies()`, and your own
 * @param config what is configured where `--policy-pack-config` says nothing else: one of the `baselines`
 */
export function policyPack(name: string, args: PolicyPackArgs, config?: PolicyPackConfig): void {
  const policies = withExceptions(args.policies);
  refuseUnknown(policies.map((policy) => policy.name));
  void new PolicyPack(name, { ...args, policies }, config);
}

/**
 * Refuses configuration of policies that there are not. Pulumi lets it pass, and with it the level that was meant; its SDK
 * shows a policy its own configuration alone, so that this is seen where the engine's call comes in.
 */
function refuseUnknown(known: readonly string[]): void {
  const call = AnalyzerService.configure as { requestDeserialize: (bytes: Buffer) => ConfigureAnalyzerRequest };
  const { requestDeserialize } = call;
  call.requestDeserialize = (bytes) => {
    const request = requestDeserialize(bytes);
    for (const name of request.getPolicyconfigMap().keys()) {
      if (known.includes(name) || name === "all") continue;
      const meant = nearest(name, known);
      const message = `there is no policy ${JSON.stringify(name)} to configure; ${
        meant === undefined ? `there are ${known.join(", ")}` : `did you mean ${JSON.stringify(meant)}?`
      }`;
      console.error(message); // the engine shows this; of the error itself it is told nothing
      throw new TypeError(message);
    }
    return request;
  };
}
