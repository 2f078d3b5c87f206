// What the program of docs/engine-options.md declares in each run.
import { inputs, kinds, nameOf, secretName, switches, type Kind, type Values } from "./optionKinds.ts";
import { rows, runs, type OnStack, type Row, type Run } from "./optionRows.ts";

/** A resource in the form that the program reads. */
export interface Declared {
  readonly kind: string;
  readonly name: string;
  readonly inputs: Values;
  readonly options: Values;
}

/** Its name after the change. */
export const laterName = (row: Row, kind: Kind): string =>
  nameOf(row.change === "renamed" ? { key: `${row.key}-new` } : row, kind);

/** The run in which a cell is recorded. */
export const runOf = (row: Row, kind: Kind): Run => row.runOf?.[kind] ?? row.run;

/** The runs of the stack that has a run. */
const around = (run: Run): readonly Run[] => Object.values<readonly Run[]>(runs).find((all) => all.includes(run)) ?? [];

/** A refusal or a preview is reverted. */
const isOnceOnly = (row: Row, kind: Kind): boolean =>
  row.isOnce === true && (row.runOf === undefined || row.runOf[kind] !== undefined);

/** Whether the program of a run has the change of a row. */
function isChangedIn(run: Run, row: Row, kind: Kind): boolean {
  const [all, at] = [around(run), runOf(row, kind)];
  if (all.indexOf(at) === 0) return false;
  return isOnceOnly(row, kind) ? at === run : all.indexOf(at) <= all.indexOf(run);
}

/** The program of a run. */
export function declared(run: Run): Declared[] {
  const all = around(run);
  const own = rows.filter((row) => all.includes(row.run));
  const isThere = (row: Row, kind: Kind) => row.isNew !== true || all.indexOf(runOf(row, kind)) <= all.indexOf(run);
  const resources = own.flatMap((row) =>
    kinds.flatMap((kind): Declared[] => {
      if (!isThere(row, kind)) return [];
      const isChanged = isChangedIn(run, row, kind);
      if (isChanged && row.change === "removed") return [];
      const { change } = isChanged ? row : {};
      // No other input of a cluster changes in place.
      const isProtected = kind === "PostgresCluster" && row.change === "small" ? { deletionProtection: isChanged } : {};
      const more = row.mayLose ? switches[kind] : isProtected;
      return [
        {
          ...{ kind, name: isChanged ? laterName(row, kind) : nameOf(row, kind) },
          inputs: { ...inputs[kind](row.key, row.app ?? "shop", change), ...more },
          options: { ...row.options?.(kind), ...(isChanged ? row.later?.(kind) : {}) },
        },
      ];
    }),
  );
  const apps = run === "first" ? [{ name: "other" }, { name: "forced", forceDestroy: true }] : [];
  const triggers = ["first-trigger", "later-trigger"].map((name) => ({
    ...{ kind: "Secret", name, options: {} },
    inputs: { app: "shop", name: secretName(name), value: "1" },
  }));
  return [
    ...apps.map((app) => ({ kind: "App", name: app.name, inputs: app, options: {} })),
    ...(all.includes("first") ? triggers : []),
    ...resources,
  ];
}

/** A program that allows the deletion of everything in the state: the last or first declaration of each resource. */
export function declaredForTheEnd(on: OnStack, isInState: (name: string) => boolean): Declared[] {
  const all = runs[on];
  const found = new Map([...declared(all[0]), ...declared(all.at(-1) ?? all[0])].map((one) => [one.name, one]));
  return [...found.values()].filter(({ name }) => isInState(name));
}
