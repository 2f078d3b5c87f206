// The handlers of a type as core calls them, with their messages, which the binding delivers separately from the result.
import { newClient } from "../../provider/client/connect.ts";
import { checkInputs } from "../../provider/core/check.ts";
import { readConfig } from "../../provider/client/config.ts";
import { create, read, remove, update, type Caller, type Found } from "../../provider/core/verbs/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";
import { jumpingClient } from "./jumpingClient.ts";
import type { TestService } from "./startService.ts";

/** A type whose handlers are called directly. */
export interface Handled {
  /** Warnings so far, oldest first. */
  readonly warnings: string[];
  /** Progress messages of waits. */
  readonly progress: string[];
  /** Request bodies, if the clock jumps. */
  readonly bodies: readonly unknown[];
  create(inputs: Values): Promise<Found>;
  read(found: Found): Promise<Values | undefined>;
  update(found: Found, inputs: Values): Promise<Values>;
  delete(found: Found): Promise<void>;
}

/** The handlers of a type; with `jump` time passes only while they sleep. */
export function handled(
  type: string,
  { url, token }: Pick<TestService, "url" | "token">,
  { jump = false, timeoutSeconds }: { readonly jump?: boolean; readonly timeoutSeconds?: number } = {},
): Handled {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);
  const warnings: string[] = [];
  const progress: string[] = [];
  const config = readConfig((key) => ({ endpoint: url, token, minHealthySeconds: "0" })[key], {});
  const warn = (message: string) => void warnings.push(message);
  const jumping = jumpingClient({ url, token });
  const caller: Caller = {
    api: jump ? jumping.api : newClient(config, warn),
    run: jumping.run,
    warn,
    progress: (message) => void progress.push(message),
    timeoutSeconds,
  };
  const checked = (inputs: Values): Values => {
    const { inputs: next, problems } = checkInputs(resource, {}, inputs, {
      randomHex: () => "0000000",
      run: jumping.run,
    });
    if (problems.length > 0) throw new Error(problems.join("\n"));
    return next;
  };
  return {
    warnings,
    progress,
    bodies: jumping.bodies,
    create: (inputs) => create(resource, checked(inputs), caller),
    read: async ({ id, state }) => (await read(resource, id, state, caller))?.state,
    update: ({ id, state }, inputs) => update(resource, id, state, checked(inputs), caller),
    delete: ({ id, state }) => remove(resource, id, state, caller),
  };
}
