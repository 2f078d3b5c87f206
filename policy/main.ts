// The pack itself: what `--policy-pack` starts.
import { join } from "node:path";
import { PolicyPack } from "@pulumi/policy";
import { baselines } from "./baselines.ts";
import { withExceptions } from "./core/exceptions.ts";
import { machinesPolicies } from "./policies/index.ts";

// Pulumi's SDK reads the version of the pack from the folder it runs in, which some engines leave at the program's.
process.chdir(join(__dirname, "../.."));

void new PolicyPack(
  "machines",
  {
    displayName: "Machines Control Service",
    description: "Policies for stacks on the Machines Control Service.",
    enforcementLevel: "advisory",
    policies: withExceptions(machinesPolicies()),
  },
  baselines.development,
);
