// What the states say about one endpoint: whose objects are there, and what their tags can prove.
import { processJournal } from "../../provider/core/journal.ts";
import type { StackState, StateResource } from "../stackState.ts";
import type { Target } from "../targets.ts";
import type { Known } from "./compare.ts";
import type { OtherStack, OtherStacks } from "./otherStacks.ts";
import { provenancesOf } from "./provenance.ts";

/** The states. */
export interface Stacks {
  readonly state: StackState;
  readonly places: readonly Target[];
  /** Resources of stacks that the user gave. */
  readonly besides: readonly StateResource[];
  readonly others: OtherStacks;
  readonly warn: (message: string) => void;
}

/** What the states say about one endpoint. */
export function knownAt({ config, provider }: Target, { state, places, besides, others, warn }: Stacks): Known {
  const own = state.resources.filter((held) => held.provider === provider?.urn);
  const { here, elsewhere } = byEndpoint(state, places, config.endpoint);
  return {
    own,
    held: [...here, ...besides],
    others: [elsewhere, ...others.stacks],
    origins: provenancesOf(config.endpoint, own, { state, besides, others }, processJournal(warn)),
  };
}

/**
 * The stack's resources at an endpoint, with those whose endpoint is unknown; and its others, as if they were those of another
 * stack. Another endpoint may be another spelling of this one.
 */
function byEndpoint(
  { stack = "", resources }: StackState,
  places: readonly Target[],
  endpoint: string,
): { readonly here: readonly StateResource[]; readonly elsewhere: OtherStack } {
  const others = new Map(
    places.flatMap(({ config, provider }) =>
      config.endpoint === endpoint ? [] : [[provider?.urn, config.endpoint] as const],
    ),
  );
  const isElsewhere = ({ provider }: StateResource): boolean => others.has(provider);
  return {
    here: resources.filter((one) => !isElsewhere(one)),
    elsewhere: {
      stack,
      resources: resources.filter(isElsewhere),
      endpointOf: ({ provider }) => others.get(provider),
    },
  };
}
