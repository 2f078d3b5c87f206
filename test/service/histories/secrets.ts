// The secrets of an App, whose version each change increments.
import { resultIn, type Client, type Target } from "./client.ts";
import type { Answer } from "../client.ts";
import type { Output } from "./history.ts";

interface Secret {
  readonly name: string;
  readonly value: string;
}

const names = ["A", "B", "C"] as const;

const versionIn = (answer: Answer, results: Readonly<Record<number, string>>): Output => ({
  ...resultIn(answer, results),
  version: answer.body.version,
});

/** The secrets of an App for the clients of a history. */
export function secretsTarget(app: string): Target {
  const path = `/apps/${app}/secrets`;
  const update = async (client: Client): Promise<void> => {
    const values = Object.fromEntries(
      names.flatMap((name) =>
        client.dice.chance(60) ? [[name, client.dice.chance(25) ? null : client.mark()] as const] : [],
      ),
    );
    await client.ask({ do: "update", values }, ["POST", path, { values }], (answer) =>
      versionIn(answer, { 200: "ok" }),
    );
  };
  const read = async (client: Client): Promise<void> => {
    await client.ask({ do: "read" }, ["GET", `${path}?show_secrets=true`], (answer) => ({
      ...resultIn(answer, { 200: "ok" }),
      values: Object.fromEntries((answer.body.secrets as Secret[]).map((secret) => [secret.name, secret.value])),
    }));
  };
  return {
    object: "secrets",
    key: app,
    read,
    async act(client) {
      const kind = client.dice.below(100);
      const name = client.dice.one(names);
      if (kind < 30) await read(client);
      else if (kind < 55) await update(client);
      else if (kind < 80) {
        const value = client.mark();
        await client.ask({ do: "set", values: { [name]: value } }, ["POST", `${path}/${name}`, { value }], (answer) =>
          versionIn(answer, { 201: "ok" }),
        );
      } else
        await client.ask({ do: "unset", values: { [name]: null } }, ["DELETE", `${path}/${name}`], (answer) =>
          versionIn(answer, { 200: "ok", 404: "missing" }),
        );
    },
  };
}
