// What every runtime does, on a node that really runs Pods.
import { describe, inject } from "vitest";
import { kubernetesRuntime } from "../../service/runtime/kubernetes/index.ts";
import { describeRuntime } from "../runtime/conformance.ts";
import { onRuntime } from "../runtime/runtimes.ts";
import { realRegion } from "./nodes.ts";

describe.runIf(inject("hasRealNode"))("on a real node", () => {
  const start = async () => {
    process.env["KUBECONFIG"] = inject("kubeconfig");
    return onRuntime({ runtime: await kubernetesRuntime(), nearest: realRegion });
  };
  describeRuntime("kubernetes", start, { keepsRootfs: false });
});
