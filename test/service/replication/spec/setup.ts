// Setup of the specification tests against several members.
import { leaveOutExceptions } from "../../../support/exceptions.ts";
import { exceptions } from "./exceptions.ts";

leaveOutExceptions(exceptions, "test/service/replication/spec/exceptions.ts");
