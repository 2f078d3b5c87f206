// Finds the services to compare: that of the stack's configuration, and that of every provider in the program.
import { configKeys, readConfig, type Config } from "../provider/client/config.ts";
import type { Api } from "../provider/client/api.ts";
import { clientFor } from "../provider/client/connect.ts";
import { isSealed, openText, plainText, type StateProvider, type StackState } from "./stackState.ts";
import { MachinesError, messageOf } from "../provider/client/errors.ts";

/** One service and organization, with the resources that the state has there. */
export interface Target {
  readonly config: Config;
  /** The provider of the program that leads there; undefined for the default one. */
  readonly provider: StateProvider | undefined;
}

/** The places, and why some that the state names are not compared. */
export interface Targets {
  readonly places: readonly Target[];
  readonly failures: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;
type Get = (key: string) => string | undefined;

/** The facts about a provider that are needed to reach its service. */
const needed = ["endpoint", "token", "organization"] as const;

/**
 * The places of a state.
 * @param chosen name of the only provider to compare
 * @param isAsked whether the user asked for an object of the default place by name
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
    // A token of the environment is never sent to a place that it may not be meant for.
    if (sealed.length > 0)
      failures.push(
        `provider ${provider.name} was not looked at: its ${sealed.join(" and ")} cannot be read, because the state holds secrets encrypted. Run this again with --provider ${provider.name} and ${sealed.map((key) => configKeys[key].environment).join(" and ")} set.`,
      );
    else
      try {
        places.push({ config: readConfig(inputsOf(provider), env), provider });
      } catch (error) {
        failures.push(`provider ${provider.name} was not looked at: ${messageOf(error)}`);
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
 * The client for the objects of the program's provider, or of the stack's configuration.
 * @param urn of the provider, undefined for the default one
 * @param providers with their secrets in clear text
 */
export function clientOf(
  urn: string | undefined,
  own: ReadonlyMap<string, string>,
  providers: readonly StateProvider[],
  warn: (message: string) => void,
): Api {
  const provider = providers.find((provider) => provider.urn === urn);
  return clientFor(
    readConfig((key) => (provider ? openText(provider.inputs[key]) : own.get(key)), process.env),
    warn,
  );
}
