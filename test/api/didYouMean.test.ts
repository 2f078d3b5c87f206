import { expect, test } from "vitest";
import { didYouMean } from "../../api/didYouMean.ts";

test.each([
  ["sizeGB", ["sizeGb", "region"], "sizeGb"],
  ["internal_port", ["internalPort", "protocol"], "internalPort"],
  ["environment", ["env", "guest"], "env"],
  ["enviroment", ["env", "guest", "mounts"], "env"],
  ["mem", ["memoryMb", "cpus"], "memoryMb"],
  ["amx", ["ams", "fra", "lhr"], "ams"],
  ["quux", ["ams", "fra", "lhr"], undefined],
])("%s among %j suggests %s", (name, known, meant) => expect(didYouMean(name, known)).toBe(meant));
