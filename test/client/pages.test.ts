// Paged lists, from services whose pages do not end.
import { expect, test } from "vitest";
import { pages } from "../../provider/client/pages.ts";

/** A service that answers with the given cursors, and the cursors it received. */
async function read(cursors: readonly (string | undefined)[]) {
  const asked: (string | undefined)[] = [];
  const ask = (cursor: string | undefined) => Promise.resolve({ next: cursors[asked.push(cursor) - 1] });
  const found = [];
  for await (const page of pages(ask, ({ next }) => next)) found.push(page);
  return { asked, count: found.length };
}

test("every page is requested with the previous page's cursor, until there is none", async () => {
  expect(await read(["a", "b", undefined])).toEqual({ asked: [undefined, "a", "b"], count: 3 });
  expect(await read(["a", ""])).toEqual({ asked: [undefined, "a"], count: 2 });
});

test("a list that returns to an earlier cursor ends there (F16)", async () => {
  expect(await read(["a", "b", "a", "b", "a"])).toEqual({ asked: [undefined, "a", "b"], count: 3 });
});

test("a list with endlessly new cursors is an error, not an endless loop", async () => {
  await expect(read(Array.from({ length: 10_001 }, (_, i) => `c${i}`))).rejects.toThrow(/10000 pages/);
});
