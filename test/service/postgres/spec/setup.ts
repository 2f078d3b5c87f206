// Setup of the specification tests of clusters on real servers.
import { leaveOutExceptions } from "../../../support/exceptions.ts";
import { exceptions } from "./simulatedOnly.ts";

leaveOutExceptions(exceptions, "test/service/postgres/spec/simulatedOnly.ts");
