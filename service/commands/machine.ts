// The Machine of an App that a command names.
import { Problem } from "../local/problem.ts";
import type { Store } from "../store/database.ts";
import { nearestOr } from "./holder.ts";

interface Found {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly destroyed_at: number | null;
}

/** An App by its name and its id. */
interface Named {
  readonly app: string;
  readonly id: string;
}

const machinesOf = (store: Pick<Store, "all">, { id }: Named): readonly Found[] =>
  store.all<Found>("SELECT id, name, state, destroyed_at FROM machines WHERE app = ? ORDER BY name, id", id);

const list = (of: readonly Found[]): string => of.map((one) => `${one.name} (${one.id})`).join(", ");

/** The id of the Machine with an id, or with a name. A destroyed one, whose name another may have, has only its id. */
export function machineNamed(store: Pick<Store, "all">, app: Named, named: string): string {
  const all = machinesOf(store, app);
  if (all.some(({ id }) => id === named)) return named;
  const kept = all.filter(({ destroyed_at }) => destroyed_at === null);
  const [first, ...more] = kept.filter(({ name }) => name === named);
  const known = kept.flatMap(({ name, id }) => [name, id]);
  if (!first) throw new Problem(`App ${app.app} has no Machine ${named}${nearestOr(named, known, "")}`);
  if (more.length > 0)
    throw new Problem(`several Machines of App ${app.app} have this name; name one by id: ${list([first, ...more])}`);
  return first.id;
}

/** The id of the only Machine that is started. */
export function startedMachine(store: Pick<Store, "all">, app: Named): string {
  const started = machinesOf(store, app).filter(({ state }) => state === "started");
  const [first, ...more] = started;
  if (!first) throw new Problem(`App ${app.app} has no started Machine`);
  if (more.length > 0) throw new Problem(`App ${app.app} has several started Machines; name one: ${list(started)}`);
  return first.id;
}
