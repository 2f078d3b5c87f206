// Setup of the specification tests on containers.
import { inject } from "vitest";
import { leaveOutExceptions } from "../../support/exceptions.ts";
import { exceptions } from "./simulatedOnly.ts";

const host = inject("engine");
if (host !== undefined) process.env["DOCKER_HOST"] = host;

leaveOutExceptions(
  exceptions,
  "test/runtime/spec/simulatedOnly.ts",
  host === undefined ? "there is no engine" : undefined,
);
