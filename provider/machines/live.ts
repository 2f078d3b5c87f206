// The Machines of an App, as lists of several types need them.
import { isDestroyed, type Machine } from "../client/machine.ts";
import type { Pass } from "../core/listing.ts";
import { fleetTag } from "../../api/fleetTags.ts";

/** The Machines of an App that are not destroyed. */
export const liveMachines = ({ api, answers }: Pass, appName: string): Promise<readonly Machine[]> =>
  answers.get(`machines/${appName}`, async () =>
    (await api.machines.list({ appName })).filter((one) => !isDestroyed(one)),
  );

/** The name of the fleet that a Machine belongs to. */
export const fleetOf = ({ config, incompleteConfig }: Machine): string | undefined =>
  (config ?? incompleteConfig)?.metadata?.[fleetTag];
