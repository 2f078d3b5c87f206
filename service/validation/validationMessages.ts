// Messages of bad values that the platform words differently, or answers with a status other than 400
// (docs/interface.md#errors, docs/interface.md#refusals).
import { refuse, type Refusal } from "../refusal.ts";

type Wording = (path: readonly PropertyKey[], value: unknown) => Refusal | undefined;

// An invalid name is 422; a name that is empty or not a text is an ordinary bad field
// (docs/interface.md#refusals).
const appNames: Wording = ([field], value) =>
  (field === "name" || field === "app_name") && typeof value === "string" && value !== ""
    ? refuse(422, "Validation failed: Name under 63 chars using numbers, lowercase letters and dashes")
    : undefined;

const waitTimeout: Wording = ([field]) =>
  field === "timeout"
    ? refuse(400, "invalid_argument: invalid WaitMachineRequest.Timeout: value must be inside range [1s, 1m0s]")
    : undefined;

// Malformed names of databases and users are 400, although other errors there are 422
// (docs/interface.md#databases, docs/interface.md#users-and-credentials).
const malformed: Wording = ([field], value) =>
  value !== undefined && (field === "name" || field === "username" || field === "schema")
    ? refuse(
        400,
        `invalid ${field}, must be 1 to 63 letters, digits, - and _, and begin and end with a letter or digit`,
      )
    : undefined;

const certificateHostname: Wording = ([field]) =>
  field === "hostname"
    ? refuse(422, 'Validation failed: hostname must be a hostname such as "www.example.com"')
    : undefined;

/**
 * Default status of a bad value: databases answer 422 (docs/interface.md#managed-postgres),
 * everything else 400.
 */
export const badStatus = (operation: string): number => (operation.startsWith("postgres.") ? 422 : 400);

/** Messages by operation; undefined for fields with the default message. */
export const validationMessages: Readonly<Record<string, Wording>> = {
  "apps.create": appNames,
  "machines.wait": waitTimeout,
  "certificates.createAcme": certificateHostname,
  "certificates.createCustom": certificateHostname,
  "postgres.list": ([field], value) =>
    field === "org_slug" && value === undefined ? refuse(400, "org_slug is required") : undefined,
  "postgres.createDatabase": malformed,
  "postgres.createUser": malformed,
};
