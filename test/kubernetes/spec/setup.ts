// Setup of the specification tests of clusters on CloudNativePG.
import { inject } from "vitest";
import { leaveOutExceptions } from "../../support/exceptions.ts";
import { exceptions } from "./exceptions.ts";

leaveOutExceptions(
  exceptions,
  "test/kubernetes/spec/exceptions.ts",
  inject("postgres") ? undefined : "this computer cannot run the operator",
);
