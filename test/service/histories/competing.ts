// Objects for which Machines and Apps compete: unique names, a volume, and a region with little room.
import type { Answer, Call } from "../client.ts";
import { configOf, resultIn, unexpected, type Client, type Target } from "./client.ts";
import { Machines } from "./machines.ts";
import type { Output } from "./history.ts";

/** A Machine in a list. */
export interface Listed {
  readonly id: string;
  readonly name: string;
  readonly config: { readonly env: { readonly MARK: string } };
}

const destroyed = (answer: Answer): Output => resultIn(answer, { 200: "ok", 404: "missing" });

/** The id of the Machine that a refusal names. */
const namedIn = ({ text }: Answer): string => /(?:machine ID|by machine) (\w+)/.exec(text)?.[1] ?? text;

/** A name that only one Machine of an App can have. */
export function machineName(app: string, key: string, names: Map<string, string>): Target {
  const machines = new Machines(app, names);
  const take = (client: Client) =>
    machines.create(
      client,
      (mark) => ({ do: "take", mark }),
      { name: key },
      (answer) => ({
        ...resultIn(answer, { 409: "taken" }),
        mark: namedIn(answer),
      }),
    );
  const read = async (client: Client): Promise<void> => {
    await client.ask({ do: "read" }, ["GET", machines.path], (answer) => {
      const holder = (answer.body as Listed[]).find(({ name }) => name === key);
      if (holder) machines.know(holder.id, holder.config.env.MARK);
      return { ...resultIn(answer, { 200: "ok" }), mark: holder?.config.env.MARK };
    });
  };
  return {
    object: "name",
    key: `machine ${key}`,
    read,
    async act(client) {
      const kind = client.dice.below(100);
      if (kind < 30) return read(client);
      const isFreed = kind < 65 && (await machines.destroy(client, (mark) => ({ do: "free", mark }), destroyed));
      if (!isFreed) await take(client);
    },
  };
}

/** A name that only one App can have. The App's network is its mark. */
export function appName(key: string): Target {
  const path = `/apps/${key}`;
  const read = async (client: Client): Promise<void> => {
    await client.ask({ do: "read" }, ["GET", path], (answer) => {
      resultIn(answer, { 200: "ok", 404: "ok" });
      return { result: "ok", mark: answer.body.network };
    });
  };
  return {
    object: "name",
    key: `app ${key}`,
    read,
    async act(client) {
      const kind = client.dice.below(100);
      if (kind < 30) await read(client);
      else if (kind < 60)
        await client.ask({ do: "free" }, ["DELETE", `${path}?force=true`], (answer) =>
          resultIn(answer, { 202: "ok", 404: "missing" }),
        );
      else {
        const mark = client.mark();
        const body = { name: key, org_slug: "personal", network: mark };
        await client.ask({ do: "take", mark }, ["POST", "/apps", body], (answer) =>
          resultIn(answer, { 201: "ok", 422: "taken" }),
        );
      }
    },
  };
}

/** A volume that only one Machine can have: one of two that stay, or a new one. */
export async function volume(call: Call, app: string, key: string, names: Map<string, string>): Promise<Target> {
  const made = await call("POST", `/apps/${app}/volumes`, { name: key, size_gb: 1 });
  if (made.status !== 200) throw unexpected(made);
  const id: string = made.body.id;
  const mounting = { mounts: [{ volume: id, path: "/data" }] };
  const machines = new Machines(app, names);
  const staying: { readonly id: string; readonly mark: string }[] = [];
  for (const mark of [`${key}-1`, `${key}-2`]) {
    const one = await call("POST", machines.path, { skip_launch: true, config: configOf(mark) });
    if (one.status !== 200) throw unexpected(one);
    names.set(one.body.id, mark);
    staying.push({ id: one.body.id, mark });
  }
  const refused = (answer: Answer): Output => ({ ...resultIn(answer, { 412: "taken" }), mark: namedIn(answer) });
  const update = async (client: Client, what: "take" | "free"): Promise<void> => {
    const machine = staying[client.dice.below(staying.length)];
    if (!machine) return;
    const config = { ...configOf(machine.mark), ...(what === "take" ? mounting : {}) };
    const request: Parameters<Call> = ["POST", `${machines.path}/${machine.id}`, { skip_launch: true, config }];
    await client.ask({ do: what, mark: machine.mark }, request, (answer) =>
      answer.status === 200 ? { result: "ok" } : refused(answer),
    );
  };
  const read = async (client: Client): Promise<void> => {
    await client.ask({ do: "read" }, ["GET", `/apps/${app}/volumes/${id}`], (answer) => ({
      ...resultIn(answer, { 200: "ok" }),
      mark: answer.body.attached_machine_id ?? undefined,
    }));
  };
  return {
    object: "volume",
    key,
    read,
    async act(client) {
      const kind = client.dice.below(100);
      if (kind < 25) await read(client);
      else if (kind < 45) await update(client, "take");
      else if (kind < 65) await update(client, "free");
      else {
        const isFreed = kind < 82 && (await machines.destroy(client, (mark) => ({ do: "free", mark }), destroyed));
        const take = { config: mounting };
        if (!isFreed) await machines.create(client, (mark) => ({ do: "take", mark }), take, refused);
      }
    },
  };
}

/** A region that has room for a few Machines. */
export function capacity(app: string, region: string, limit: number, names: Map<string, string>): Target {
  const machines = new Machines(app, names);
  const read = async (client: Client): Promise<void> => {
    await client.ask({ do: "read" }, ["GET", `${machines.path}?region=${region}`], (answer) => {
      const listed = answer.body as Listed[];
      for (const { id, config } of listed) machines.know(id, config.env.MARK);
      return { ...resultIn(answer, { 200: "ok" }), marks: listed.map(({ config }) => config.env.MARK).sort() };
    });
  };
  return {
    object: "capacity",
    key: region,
    read,
    async act(client) {
      const kind = client.dice.below(100);
      if (kind < 25) return read(client);
      const isFreed = kind < 55 && (await machines.destroy(client, (mark) => ({ do: "destroy", mark }), destroyed));
      if (isFreed) return;
      await machines.create(
        client,
        (mark) => ({ do: "create", mark, limit }),
        { region },
        (answer) => resultIn(answer, { 422: "full" }),
      );
    },
  };
}
