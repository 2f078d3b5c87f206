// Finds resources that are equal but for their names and regions, and declares them in a loop.
import { grouped } from "./grouped.ts";
import { idsIn, literal, type Block, type Declaration, type Entry, type Expression } from "./program.ts";
import { varyingOf } from "./types.ts";

/** Two Machines are worth a loop. Of smaller resources, two are as short without one. */
const fewest = (type: string): number => (type === "Machine" ? 2 : 3);

/**
 * The blocks of a section.
 * @param isUsed whether a resource outside of a block refers to one, which must have a variable then
 */
export function blocksOf(
  declarations: readonly Declaration[],
  usersOf: ReadonlyMap<string, readonly string[]>,
): readonly Block[] {
  const bundles = bundlesOf(declarations, usersOf);
  const groups = grouped(bundles, (bundle) => bundle.shape ?? bundle);
  const blocks: Block[] = [];
  const done = new Set<Bundle>();
  for (const bundle of bundles) {
    if (done.has(bundle)) continue;
    const rows = groups.get(bundle.shape ?? bundle) ?? [bundle];
    const type = bundle.members.at(-1)?.type ?? "";
    const isLoop = bundle.shape !== undefined && rows.length >= fewest(type);
    for (const row of isLoop ? rows : [bundle]) done.add(row);
    if (isLoop) blocks.push({ is: "loop", ...loopOf(rows.map(({ members }) => members)) });
    else blocks.push(...bundle.members.map((resource) => ({ is: "resource", resource }) as const));
  }
  return blocks;
}

/** Resources that belong together: a Machine after the volumes that it alone mounts. */
interface Bundle {
  readonly members: readonly Declaration[];
  /** What is the same in every row of a loop; undefined if it can be in none. */
  readonly shape: string | undefined;
}

function bundlesOf(
  declarations: readonly Declaration[],
  usersOf: ReadonlyMap<string, readonly string[]>,
): readonly Bundle[] {
  const byKey = new Map(declarations.map((one) => [one.key, one]));
  const own = new Map<string, Declaration[]>();
  for (const machine of declarations) {
    if (machine.type !== "Machine") continue;
    const volumes = machine.inputs
      .flatMap(([, value]) => idsIn(value))
      .flatMap((key) => byKey.get(key) ?? [])
      .filter(({ type, key }) => type === "Volume" && (usersOf.get(key) ?? []).length === 1);
    own.set(machine.key, volumes);
  }
  const mounted = new Set([...own.values()].flat().map(({ key }) => key));
  return declarations
    .filter(({ key }) => !mounted.has(key))
    .map((one) => {
      const members = [...(own.get(one.key) ?? []), one];
      return { members, shape: shapeOf(members, usersOf) };
    });
}

function shapeOf(members: readonly Declaration[], usersOf: ReadonlyMap<string, readonly string[]>): string | undefined {
  const keys = members.map(({ key }) => key);
  const isUsedElsewhere = members.some(({ key }) => (usersOf.get(key) ?? []).some((user) => !keys.includes(user)));
  if (isUsedElsewhere || members.some(({ type }) => varyingOf(type) === undefined)) return undefined;
  return JSON.stringify(
    members.map(({ type, inputs, ignoreChanges }) => [
      type,
      ignoreChanges,
      inputs.map(([name, value]) => [name, varyingOf(type)?.includes(name) ? null : withOwn(value, keys)]),
    ]),
  );
}

/** A value with the resources of its own bundle by their position. */
const withOwn = (value: Expression, keys: readonly string[]): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, part: unknown) =>
      typeof part === "object" && part !== null && (part as Expression).is === "id"
        ? {
            is: "id",
            of: keys.includes((part as { of: string }).of)
              ? keys.indexOf((part as { of: string }).of)
              : (part as { of: string }).of,
          }
        : part,
    ),
  );

interface Column {
  readonly name: string;
  readonly values: readonly Expression[];
}

/** The loop over rows that have one shape. */
function loopOf(rows: readonly (readonly Declaration[])[]) {
  const columns: Column[] = [];
  const first = rows[0] ?? [];
  const inColumn = (values: readonly Expression[], wanted: string): Expression => {
    const [one = literal(null)] = values;
    if (values.every((value) => isSame(value, one))) return one;
    const known = columns.flatMap((column) => inTermsOf(column, values) ?? [])[0];
    if (known) return known;
    let name = wanted;
    for (let number = 2; columns.some((column) => column.name === name); number++) name = `${wanted}${number}`;
    columns.push({ name, values });
    return { is: "column", name, before: "", after: "" };
  };
  // The Machine comes first: names of its volumes are derived from its own.
  const positions = first.map((_, i) => i).reverse();
  const body = new Map(
    positions.map((i) => {
      const ofRow = rows.map((row) => row[i]).filter((one) => one !== undefined);
      const [one] = ofRow;
      if (!one) throw new Error("the rows of a loop have different lengths");
      const inputs = one.inputs.map(([name, value], j): Entry => {
        if (!varyingOf(one.type)?.includes(name)) return [name, value];
        return [
          name,
          inColumn(
            ofRow.map(({ inputs }) => inputs[j]?.[1] ?? literal(null)),
            name,
          ),
        ];
      });
      const name = inColumn(
        ofRow.map(({ name }) => name),
        columns.some((column) => column.name === "name") ? "label" : "name",
      );
      return [i, { ...one, name, inputs }] as const;
    }),
  );
  return {
    keys: rows.map((row) => row.map(({ key }) => key)),
    rows: rows.map((_, i) => columns.map(({ name, values }): Entry => [name, values[i] ?? literal(null)])),
    body: first.map((one, i) => body.get(i) ?? one),
  };
}

const isSame = (a: Expression, b: Expression): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Values as those of a column, with the same text before and after each; undefined if they are not. */
function inTermsOf({ name, values: known }: Column, values: readonly Expression[]): Expression | undefined {
  if (values.every((value, i) => isSame(value, known[i] ?? literal(null))))
    return { is: "column", name, before: "", after: "" };
  const texts = [values, known].map((all) =>
    all.map((one) => (one.is === "literal" && typeof one.value === "string" ? one.value : undefined)),
  );
  const [[whole], [part]] = texts as [(string | undefined)[], (string | undefined)[]];
  if (whole === undefined || part === undefined || part === "") return undefined;
  const at = whole.indexOf(part);
  if (at < 0) return undefined;
  const [before, after] = [whole.slice(0, at), whole.slice(at + part.length)];
  const fits = values.every(
    (_, i) => texts[1]?.[i] !== undefined && texts[0]?.[i] === `${before}${texts[1][i]}${after}`,
  );
  return fits ? { is: "column", name, before, after } : undefined;
}
