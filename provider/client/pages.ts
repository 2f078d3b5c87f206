// Reads paged lists to their end.
import { MachinesError } from "./errors.ts";
import type { Api, AnswerOf } from "./api.ts";

type Args<G extends keyof Api, M extends keyof Api[G]> = Api[G][M] extends (args: infer A) => unknown
  ? Omit<A, "cursor">
  : never;

/** More than any organization has: a list with more pages is endless. */
const mostPages = 10_000;

/**
 * Requests page after page, even after an empty one. A service that returns a cursor a second time would never end: its
 * list ends there (F16).
 * @throws MachinesError `api` when the list does not end.
 */
export async function* pages<Page>(
  ask: (cursor: string | undefined) => Promise<Page>,
  next: (page: Page) => string | undefined,
): AsyncGenerator<Page> {
  const seen = new Set<string>();
  for (let cursor: string | undefined; ;) {
    const page = await ask(cursor);
    yield page;
    cursor = next(page) || undefined;
    if (cursor === undefined || seen.has(cursor)) return;
    if (seen.size + 1 >= mostPages)
      throw new MachinesError("api", `the service's list does not end: each of ${mostPages} pages named a next page`);
    seen.add(cursor);
  }
}

async function collected<Page, Item>(
  all: AsyncGenerator<Page>,
  items: (page: Page) => readonly Item[],
): Promise<Item[]> {
  const found: Item[] = [];
  for await (const page of all) found.push(...items(page));
  return found;
}

/** Pages of the Apps of an organization (docs/interface.md#apps). */
export const appPages = (api: Api, args: Args<"apps", "list">) =>
  pages((cursor) => api.apps.list({ ...args, cursor }), nextCursor);

/**
 * Pages of the hostnames of an App (docs/interface.md#certificates); of the maximum size unless the arguments say
 * otherwise.
 */
export const certificatePages = (api: Api, args: Args<"certificates", "list">) =>
  pages((cursor) => api.certificates.list({ limit: 500, ...args, cursor }), nextCursor);

/** Pages of the Machines of an organization (docs/interface.md#organization-lists). */
export const orgMachinePages = (api: Api, args: Args<"orgs", "machines">) =>
  pages((cursor) => api.orgs.machines({ ...args, cursor }), nextCursor);

/** Pages of the volumes of an organization (docs/interface.md#organization-lists). */
export const orgVolumePages = (api: Api, args: Args<"orgs", "volumes">) =>
  pages((cursor) => api.orgs.volumes({ ...args, cursor }), nextCursor);

const nextCursor = (page: { readonly nextCursor?: string | undefined }): string | undefined => page.nextCursor;

/** Every App of an organization once (docs/interface.md#apps). */
export const everyApp = async (api: Api, args: Args<"apps", "list">): Promise<AnswerOf<"apps", "list">["apps"]> =>
  latestOfEach(await collected(appPages(api, args), ({ apps }) => apps), ({ name }) => name);

/** Every hostname of an App once (docs/interface.md#certificates). */
export const everyCertificate = async (api: Api, args: Args<"certificates", "list">) =>
  latestOfEach(
    await collected(certificatePages(api, args), ({ certificates }) => certificates),
    ({ hostname }) => hostname,
  );

/**
 * Every Machine of an organization once, and the regions that did not answer (docs/interface.md#organization-lists).
 */
export async function everyOrgMachine(
  api: Api,
  args: Args<"orgs", "machines">,
): Promise<{ machines: AnswerOf<"orgs", "machines">["machines"]; errorRegions: string[] }> {
  const errorRegions = new Set<string>();
  const found = await collected(orgMachinePages(api, args), (page) => {
    for (const region of page.errorRegions ?? []) errorRegions.add(region);
    return page.machines;
  });
  return { machines: latestOfEach(found, pathOf), errorRegions: [...errorRegions] };
}

/** Every volume of an organization once (docs/interface.md#organization-lists). */
export const everyOrgVolume = async (api: Api, args: Args<"orgs", "volumes">) =>
  latestOfEach(await collected(orgVolumePages(api, args), ({ volumes }) => volumes), pathOf);

const pathOf = ({ appName, id }: { readonly appName: string; readonly id: string }): string => `${appName}/${id}`;

/**
 * An object that changes between pages may be on several of them (docs/interface.md#organization-lists); the last one
 * counts.
 */
const latestOfEach = <T>(items: readonly T[], keyOf: (item: T) => string | undefined): T[] => [
  ...new Map(items.map((item) => [keyOf(item), item])).values(),
];
