// R8: gone is proved. A 404 alone may come from a wrong endpoint, a wrong organization or a list that is late.
import { isNotFound, MachinesError } from "../core/errors.ts";
import type { Api } from "./api.ts";

/** How long a read whose App is missing waits for another App of the run to answer. */
const othersAnswerWithin = 3000;

/**
 * Returns when a 404 for something in the App is proof that it is gone.
 * @throws MachinesError `missing-apps` when every App of the run looks gone: then endpoint or organization is likely wrong.
 */
export async function proveGone(api: Api, appName: string): Promise<void> {
  if (api.shared.appsDeleted.has(appName)) return;
  try {
    await api.apps.get({ appName });
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  await confirmMissing(api, appName);
  if (api.config.allowMissingApps) return;
  const until = api.clock.now() + othersAnswerWithin;
  while (api.shared.appsSeen.size === 0 && api.shared.appsDeleted.size === 0) {
    if (api.clock.now() >= until) {
      throw new MachinesError(
        "missing-apps",
        `the service knows neither App ${appName} nor any other App of this run: are endpoint (${api.config.endpoint}) and organization (${api.config.organization}) right? ` +
          "Nothing was forgotten. If the Apps are really gone, run once with MACHINES_ALLOW_MISSING_APPS=true in the environment.",
      );
    }
    await api.clock.sleep(50, api.deadline.signal);
  }
}

/** The organization's list, asked with a valid token, must lack the App too. */
async function confirmMissing(api: Api, appName: string): Promise<void> {
  let cursor: string | undefined;
  const seen = new Set<string>();
  do {
    const page = await api.apps.list({ orgSlug: api.config.organization, cursor });
    if (page.apps.some(({ name }) => name === appName)) {
      throw new MachinesError(
        "api",
        `the service answers 404 for App ${appName} and still lists it; try again when it has made up its mind`,
      );
    }
    cursor = page.nextCursor || undefined;
    if (cursor !== undefined && seen.has(cursor)) break;
    if (cursor !== undefined) seen.add(cursor);
  } while (cursor !== undefined);
}
