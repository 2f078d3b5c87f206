// Loaded first, because requests fail on an older Node.js with errors that seem to come from the service.
import { nodeProblem } from "../../api/nodeProblem.ts";

const problem = nodeProblem("pulumi-machines");
if (problem !== undefined) {
  const error = new Error(problem);
  // Pulumi prints the stacks of errors: in a program unless the first property is there, in its host of providers always.
  throw Object.defineProperties(error, { __pulumiRunError: { value: true }, stack: { value: "" } });
}
