// Lists in pages, from services that do not end them.
import { expect, test } from "vitest";
import { pages } from "../../provider/client/pages.ts";

/** The pages of a service that answers with these cursors, and the cursors it was asked with. */
async function read(cursors: readonly (string | undefined)[]) {
  const asked: (string | undefined)[] = [];
  const ask = (cursor: string | undefined) => Promise.resolve({ next: cursors[asked.push(cursor) - 1] });
  const found = [];
  for await (const page of pages(ask, ({ next }) => next)) found.push(page);
  return { asked, count: found.length };
}

test("every page is requested with the cursor of the one before, until there is none", async () => {
  expect(await read(["a", "b", undefined])).toEqual({ asked: [undefined, "a", "b"], count: 3 });
  expect(await read(["a", ""])).toEqual({ asked: [undefined, "a"], count: 2 });
});

test("a list that returns to an earlier cursor ends there (F16)", async () => {
  expect(await read(["a", "b", "a", "b", "a"])).toEqual({ asked: [undefined, "a", "b"], count: 3 });
});

test("a list of ever new cursors is an error, and no endless loop", async () => {
  await expect(read(Array.from({ length: 10_001 }, (_, i) => `c${i}`))).rejects.toThrow(/10000 pages/);
});
