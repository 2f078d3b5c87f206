// Finds the services to compare: that of the stack's configuration, and that of every explicit provider.
import { configKeys, readConfig, type Config } from "../provider/client/config.ts";
import type { Api } from "../provider/client/api.ts";
import { newClient } from "../provider/client/connect.ts";
import { processJournal } from "../provider/core/journal.ts";
import type { Call } from "../provider/core/resource.ts";
import { Run } from "../provider/core/run/run.ts";
import { isSealed, openText, plainText, type StateProvider, type StackState } from "./stackState.ts";
import { MachinesError, messageOf } from "../provider/client/errors.ts";

/** One service and organization, with the state's resources there. */
export interface Target {
  readonly config: Config;
  /** The explicit provider for it; undefined for the default one. */
  readonly provider: StateProvider | undefined;
}

/** The endpoints, and why some endpoints of the state are not compared. */
export interface Targets {
  readonly places: readonly Target[];
  readonly failures: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;
type Get = (key: string) => string | undefined;

/** The facts about a provider that are needed to reach its service. */
const needed = ["endpoint", "token", "organization"] as const;

/**
 * The endpoints of a state.
 * @param chosen name of the only provider to compare
 * @param isAsked whether the user named an object of the default endpoint
 * @throws MachinesError `configuration` for an invalid one, `invalid-input` for an unknown provider
 */
export function targetsOf(
  state: StackState,
  get: Get,
  env: Environment,
  { chosen, isAsked }: { readonly chosen: string | undefined; readonly isAsked: boolean },
): Targets {
  if (chosen !== undefined) return { places: [chosenPlace(state, env, chosen)], failures: [] };
  const hasDefault = state.resources.some(({ provider }) => provider === undefined);
  const places: Target[] = [];
  if (hasDefault || isAsked || state.providers.length === 0)
    places.push({ config: readConfig(get, env), provider: undefined });
  const failures: string[] = [];
  for (const provider of state.providers) {
    const sealed = needed.filter((key) => isSealed(provider.inputs[key]));
    // The environment's token is never sent to an endpoint that it may not be meant for.
    if (sealed.length > 0)
      failures.push(
        `provider ${provider.name} was not read: its ${sealed.join(" and ")} cannot be read, because the state holds secrets encrypted. Run this again with --provider ${provider.name} and ${sealed.map((key) => configKeys[key].environment).join(" and ")} set.`,
      );
    else
      try {
        places.push({ config: readConfig(inputsOf(provider), env), provider });
      } catch (error) {
        failures.push(`provider ${provider.name} was not read: ${messageOf(error)}`);
      }
  }
  return { places, failures };
}

function chosenPlace({ providers }: StackState, env: Environment, chosen: string): Target {
  const provider = providers.find(({ name }) => name === chosen);
  if (!provider)
    throw new MachinesError(
      "invalid-input",
      `the state holds no provider ${JSON.stringify(chosen)}; ${providers.length === 0 ? "it holds none that a program created" : `it holds ${providers.map(({ name }) => name).join(", ")}`}`,
    );
  return { config: readConfig(inputsOf(provider), env), provider };
}

const inputsOf =
  ({ inputs }: StateProvider): Get =>
  (key) =>
    plainText(inputs[key]);

/**
 * The client for the objects of an explicit provider, or of the stack's configuration.
 * @param urn of the provider, undefined for the default one
 * @param providers with their secrets in plain text
 */
export function clientOf(
  urn: string | undefined,
  own: ReadonlyMap<string, string>,
  providers: readonly StateProvider[],
  warn: (message: string) => void,
  env: Environment = process.env,
): Api {
  const provider = providers.find((provider) => provider.urn === urn);
  return newClient(
    readConfig((key) => (provider ? openText(provider.inputs[key]) : own.get(key)), env),
    warn,
  );
}

/** Milliseconds for reading the objects of one request. */
const longestLook = 120_000;

/** The arguments of a handler that reads an object. */
export const readingCall = (api: Api, warn: Call["warn"], warnOfJournal = warn): Call => ({
  api: api.within({ at: api.clock.now() + longestLook, allowed: "2m" }),
  run: new Run(() => processJournal(warnOfJournal)),
  progress: () => undefined,
  warn,
});
