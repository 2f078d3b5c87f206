// Where to look: the place that the stack's configuration names, and that of every provider a program made.
import { configKeys, readConfig, type Config } from "../provider/client/config.ts";
import type { Api } from "../provider/client/api.ts";
import { clientFor } from "../provider/client/connect.ts";
import { isSealed, openText, plainText, type ProviderHeld, type StackState } from "./stackState.ts";
import { MachinesError, messageOf } from "../provider/client/errors.ts";

/** One service and organization, with the resources that are there by the state. */
export interface Target {
  readonly config: Config;
  /** The provider of the program that leads there; undefined for the default one. */
  readonly provider: ProviderHeld | undefined;
}

/** The places, and why some that the state names are none to look at. */
export interface Targets {
  readonly places: readonly Target[];
  readonly failures: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;
type Get = (key: string) => string | undefined;

/** What of a provider must be known to reach its place. */
const needed = ["endpoint", "token", "organization"] as const;

/**
 * The places of a state.
 * @param chosen name of the one provider to look at
 * @param isAsked whether something of the default place is asked for by name
 * @throws MachinesError `configuration` for one that cannot work, `invalid-input` for a provider that is not there
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
      `the state holds no provider ${JSON.stringify(chosen)}; ${providers.length === 0 ? "it holds none that a program made" : `it holds ${providers.map(({ name }) => name).join(", ")}`}`,
    );
  return { config: readConfig(inputsOf(provider), env), provider };
}

const inputsOf =
  ({ inputs }: ProviderHeld): Get =>
  (key) =>
    plainText(inputs[key]);

/**
 * The client for what a provider of the program made, or the stack's configuration.
 * @param urn of the provider, undefined for the default one
 * @param providers with their secrets in the clear
 */
export function clientOf(
  urn: string | undefined,
  own: ReadonlyMap<string, string>,
  providers: readonly ProviderHeld[],
  warn: (message: string) => void,
): Api {
  const made = providers.find((provider) => provider.urn === urn);
  return clientFor(
    readConfig((key) => (made ? openText(made.inputs[key]) : own.get(key)), process.env),
    warn,
  );
}
