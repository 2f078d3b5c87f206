// R8: gone is proved. A 404 alone may come from a wrong endpoint, a wrong organization or a list that is late.
import { ApiError, isNotFound, MachinesError } from "../core/errors.ts";
import type { Api } from "./api.ts";
import { everyApp } from "./pages.ts";

/** How long a read whose App or cluster is missing waits for another one of the run to answer. */
const othersAnswerWithin = 3000;

/** What something lies in, or is itself. */
export interface Holder {
  readonly kind: "app" | "cluster";
  readonly name: string;
}

/** What comes of a look; undefined where the answer is that there is nothing. What rests on that being true is `unlessGone`. */
export async function ifThere<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** What comes of the work; undefined where what it is about is proved to be gone with, or from, what holds it. */
export async function unlessGone<T>(api: Api, holder: Holder, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await proveGone(api, holder);
    return undefined;
  }
}

/**
 * Returns when a 404 for something in the App or the cluster is proof that it is gone.
 * @throws MachinesError `missing-apps` when every App and cluster of the run looks gone: then endpoint or organization is likely wrong.
 */
export async function proveGone(api: Api, holder: Holder): Promise<void> {
  if (api.shared.deleted.has(holder.name)) return;
  try {
    await (holder.kind === "app"
      ? api.apps.get({ appName: holder.name })
      : api.postgres.get({ postgresClusterId: holder.name }));
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // The service remembers it, and that it was deleted.
    if (error instanceof ApiError && error.status === 410) return;
  }
  await confirmMissing(api, holder);
  if (api.config.allowMissingApps) return;
  const until = api.clock.now() + othersAnswerWithin;
  while (api.shared.seen.size === 0 && api.shared.deleted.size === 0) {
    if (api.clock.now() >= until) {
      throw new MachinesError(
        "missing-apps",
        `the service knows neither ${nounOf(holder)} ${holder.name} nor any other App of this run: are endpoint (${api.config.endpoint}) and organization (${api.config.organization}) right? ` +
          "Nothing was forgotten. If they are really gone, run once with MACHINES_ALLOW_MISSING_APPS=true in the environment.",
      );
    }
    await api.clock.sleep(50, api.deadline.signal);
  }
}

const nounOf = ({ kind }: Holder): string => (kind === "app" ? "App" : "cluster");

/** The organization's list, asked with a valid token, must lack it too. */
async function confirmMissing(api: Api, holder: Holder): Promise<void> {
  const { kind, name } = holder;
  const orgSlug = api.config.organization;
  const listed =
    kind === "app"
      ? (await everyApp(api, { orgSlug })).some((app) => app.name === name)
      : (await api.postgres.list({ orgSlug })).data.some(({ id }) => id === name);
  if (listed) {
    throw new MachinesError(
      "api",
      `the service answers 404 for ${nounOf(holder)} ${name} and still lists it; try again when it has made up its mind`,
    );
  }
}
