// Lists that come in pages, to their end.
import type { Api, AnswerOf } from "./api.ts";

type Args<G extends keyof Api, M extends keyof Api[G]> = Api[G][M] extends (args: infer A) => unknown
  ? Omit<A, "cursor">
  : never;

/** Asks page after page. A service that answers a cursor a second time would be asked for ever: its list ends there. */
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

/** Every App of an organization (spec 4.1). */
export const everyApp = (api: Api, args: Args<"apps", "list">): Promise<AnswerOf<"apps", "list">["apps"]> =>
  collected(
    pages(
      (cursor) => api.apps.list({ ...args, cursor }),
      ({ nextCursor }) => nextCursor,
    ),
    ({ apps }) => apps,
  );
