// The generated pages about the interface and about faults.
import { expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import { faultsPage } from "../../tools/generate/faults.ts";
import { operationsPage } from "../../tools/generate/operations.ts";
import { faults } from "../faults/catalogue.ts";

/** The cells of the rows of a page's tables. */
const rowsOf = (page: string): string[][] =>
  page
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| request") && !line.startsWith("| | "))
    .map((line) => line.slice(2, -2).split(" | "));

test("every operation is listed once, with its effect, its answer and a link to its rules", () => {
  const rows = rowsOf(operationsPage());
  const ids = Object.values(contract).flatMap((group) => Object.values(group).map(({ id }) => `\`${id}\``));
  expect(rows.map(([, id]) => id)).toEqual(ids);
  expect(
    rows.filter(
      ([, , does, answers, rules]) => !does || !/^2\d\d/.test(answers ?? "") || !rules?.includes("(interface.md#"),
    ),
  ).toEqual([]);
  expect(rows.find(([, id]) => id === "`postgres.attach`")?.[3]).toMatch(/^201; 200 it is attached already; 400 /);
});

test("every fault is listed once, with its promise and a test", () => {
  const rows = rowsOf(faultsPage(process.cwd()));
  expect(rows.map(([id]) => id)).toEqual(Object.keys(faults));
  expect(rows.filter(([, wrong, promised, tests]) => !wrong || !promised || !tests?.includes("](../test/"))).toEqual(
    [],
  );
});
