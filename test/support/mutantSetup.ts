// Setup of every test file in a run with one mutant, which `npm run test:mutants` starts; see mutants.ts.
import { begin, mutantOf } from "./mutants.ts";

const { PULUMI_MACHINES_MUTANT: name } = process.env;
if (name !== undefined) begin(mutantOf(name));
