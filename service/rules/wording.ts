// Where the platform words a bad value in its own way, or answers another status than 400 (bodies 1.1, 1.2).
import { refuse, type Refusal } from "../refusal.ts";

type Wording = (path: readonly PropertyKey[], value: unknown) => Refusal | undefined;

const appNames: Wording = ([field]) =>
  field === "name" || field === "app_name"
    ? refuse(422, "Validation failed: Name under 63 chars using numbers, lowercase letters and dashes")
    : undefined;

const waitTimeout: Wording = ([field]) =>
  field === "timeout"
    ? refuse(400, "invalid_argument: invalid WaitMachineRequest.Timeout: value must be inside range [1s, 1m0s]")
    : undefined;

/** By operation; a field it has nothing to say about is worded like every other. */
export const wording: Readonly<Record<string, Wording>> = { "apps.create": appNames, "machines.wait": waitTimeout };
