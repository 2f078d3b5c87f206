// The pack itself, which `--policy-pack` starts.
import { join } from "node:path";
import { baselines } from "./baselines.ts";
import { policyPack } from "./pack.ts";
import { machinesPolicies } from "./policies/index.ts";

// Pulumi's SDK reads the version of the pack from the folder it runs in, which some engines leave at the program's.
process.chdir(join(__dirname, "../.."));

policyPack(
  "machines",
  {
    displayName: "Machines Control Service",
    description: "Policies for stacks on the Machines Control Service.",
    enforcementLevel: "advisory",
    policies: machinesPolicies(),
  },
  baselines.development,
);
