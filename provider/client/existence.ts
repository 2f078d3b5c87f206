// R8: a deletion is confirmed. A 404 alone may come from a wrong endpoint, a wrong organization or a stale list.
import { ApiError, isNotFound, MachinesError } from "./errors.ts";
import type { Api } from "./api.ts";
import { everyApp } from "./pages.ts";
import { pollUntil } from "./poll.ts";

/** Milliseconds that a read with a missing App or cluster waits for another one of the run to answer. */
const othersAnswerWithin = 3000;

/** The App or cluster that contains an object, or is the object. */
export interface Place {
  readonly kind: "app" | "cluster";
  readonly name: string;
}

/** The result of a read; undefined on a 404 or 410. If absence has to be proved, use {@link ignoreIfDeleted}. */
export async function orUndefined<T>(readPlace: () => Promise<T>): Promise<T | undefined> {
  try {
    return await readPlace();
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The result of the work; undefined if its object is confirmed to be deleted, alone or with its parent. */
export async function ignoreIfDeleted<T>(api: Api, place: Place, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await confirmDeleted(api, place);
    return undefined;
  }
}

/**
 * Returns if a 404 for an object in the App or the cluster proves that the object is deleted.
 * @throws MachinesError `missing-apps` when every App and cluster of the run is missing. Then the endpoint or the organization is probably wrong.
 */
export async function confirmDeleted(api: Api, place: Place): Promise<void> {
  if (api.session.deleted.has(place.name)) return;
  try {
    await readPlace(api, place);
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // A 410 says that the object existed and was deleted.
    if (error instanceof ApiError && error.status === 410) return;
  }
  await confirmMissing(api, place);
  if (api.config.allowMissingApps) return;
  const { seen, deleted } = api.session;
  const isSeen = () => Promise.resolve(seen.size > 0 || deleted.size > 0 || undefined);
  if (!(await pollUntil(api, api.clock.now() + othersAnswerWithin, isSeen))) throw missing(api, place);
}

const missing = (api: Api, place: Place): MachinesError =>
  new MachinesError(
    "missing-apps",
    `the service knows neither ${nounOf(place)} ${place.name} nor any other App of this run: are endpoint (${api.config.endpoint}) and organization (${api.config.organization}) right? ` +
      "Nothing was changed or forgotten. If they are really gone, run `pulumi refresh` once with MACHINES_ALLOW_MISSING_APPS=true in the environment.",
  );

const nounOf = ({ kind }: Place): string => (kind === "app" ? "App" : "cluster");

/** Confirms with a valid token that the organization's list lacks it too. */
async function confirmMissing(api: Api, place: Place): Promise<void> {
  const { kind, name } = place;
  const orgSlug = api.config.organization;
  const listed =
    kind === "app"
      ? (await everyApp(api, { orgSlug })).some((app) => app.name === name)
      : (await api.postgres.list({ orgSlug })).data.some(({ id }) => id === name);
  if (listed) {
    throw new MachinesError(
      "api",
      `the service answers 404 for ${nounOf(place)} ${name} and still lists it, so it contradicts itself; try again in a few seconds`,
    );
  }
}

/**
 * Confirms before a create that at least one App or cluster of the state exists (R14). Otherwise endpoint or organization lead
 * to another service, and no stack would find the new object again.
 * @throws MachinesError `missing-apps` when none is
 */
export async function confirmAnyPlace(api: Api, places: readonly Place[]): Promise<void> {
  const { seen, deleted } = api.session;
  if (seen.size === 0 && deleted.size === 0) await confirmPlaces(api, places);
}

/** Confirms that at least one App or cluster exists. A failed read proves nothing. @throws MachinesError `missing-apps` */
export async function confirmPlaces(api: Api, places: readonly Place[]): Promise<void> {
  if (api.config.allowMissingApps) return;
  for (const place of places)
    if (await api.session.answers.get(`place ${place.kind} ${place.name}`, () => mayBeThere(api, place))) return;
  const [first] = places;
  if (first) throw missing(api, first);
}

async function mayBeThere(api: Api, place: Place): Promise<boolean> {
  try {
    await readPlace(api, place);
    return true;
  } catch (error) {
    return !isNotFound(error) || error.status === 410;
  }
}

const readPlace = (api: Api, { kind, name }: Place): Promise<unknown> =>
  kind === "app" ? api.apps.get({ appName: name }) : api.postgres.get({ postgresClusterId: name });
