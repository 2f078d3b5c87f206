// Mistakes that the universe must find, in each of its parts. The members have some more in member.ts and world.ts, by their names.
import { DatabaseSync } from "node:sqlite";
import type { Outcome, Sent, Transport } from "../../provider/client/transport.ts";
import { canary } from "../faults/programs.ts";
import type { Planted } from "../support/simulation.ts";
import type { Verbs } from "../support/verbs.ts";
import { instead } from "../support/instead.ts";

/** The mistakes, by the part that makes them. */
export const bugs = {
  members: [
    "a leader appends without a fence",
    "a leader answers before the append",
    "a leader counts its lease from after the request",
    "a leader reads without a lease",
    "a member skips an entry",
    "a member leads before it has read the log",
    "the log is trimmed too early",
  ],
  service: [
    "a takeover forgets the timers",
    "a takeover forgets the newest secret",
    "the deletion of a Machine is answered and not done",
    "a secret is stored with another value",
    "a Machine is created twice",
  ],
  provider: [
    "a create leaves no record",
    "a lost create is sent again at once",
    "a delete does nothing",
    "an update is stored and not sent",
    "a failure quotes a secret",
  ],
  engine: ["an update gets the previous inputs", "a create is done twice", "the outputs of a create are not stored"],
} as const;

/** One of the mistakes. */
export type Bug = (typeof bugs)[keyof typeof bugs][number];

export const everyBug: readonly Bug[] = Object.values(bugs).flat();

/** What a takeover loses of the store. */
const lostSql: Partial<Record<Bug, string>> = {
  "a takeover forgets the timers": "DELETE FROM timers",
  "a takeover forgets the newest secret": "DELETE FROM secrets WHERE rowid = (SELECT max(rowid) FROM secrets)",
};

/** Breaks the store of a member that takes over. */
export function plantInStore(file: string, bug: Bug | undefined): void {
  const sql = bug && lostSql[bug];
  if (sql === undefined) return;
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

/** A reply that no service gives. */
interface Planned {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

const machinePath = /\/v1\/apps\/[^/]+\/machines\/[^/]+$/;

/** Breaks how a leader answers: it gets another request, or gives this reply. */
export function plantInRequest(sent: Sent, bug: Bug | undefined): { readonly sent: Sent; readonly reply?: Planned } {
  const { pathname } = new URL(sent.url);
  if (
    bug === "the deletion of a Machine is answered and not done" &&
    sent.method === "DELETE" &&
    machinePath.test(pathname)
  )
    return { sent, reply: { status: 200, headers: { "content-type": "application/json" }, text: '{"ok":true}' } };
  if (bug === "a secret is stored with another value" && sent.method === "POST" && pathname.endsWith("/secrets"))
    return { sent: { ...sent, body: sent.body?.replace(canary, "another") } };
  return { sent };
}

/** A request that a leader carries out a second time, for an object with another name. */
export function secondRequest(sent: Sent, bug: Bug | undefined): Sent | undefined {
  const { pathname } = new URL(sent.url);
  const isCreate = sent.method === "POST" && pathname.endsWith("/machines");
  if (bug !== "a Machine is created twice" || !isCreate || sent.body === undefined) return undefined;
  return { ...sent, body: sent.body.replace(/"name":"([^"]+)"/, '"name":"$1-2"') };
}

const sendsAgain = (transport: Transport): Transport =>
  Object.assign(
    async (sent: Sent): Promise<Outcome> => {
      const outcome = await transport(sent);
      return outcome.kind === "lost" && sent.method === "POST" ? transport(sent) : outcome;
    },
    { close: () => transport.close() },
  );

/** Breaks a process of the provider, or what the engine does with it. */
const inProcess: Partial<Record<Bug, Planted>> = {
  "a create leaves no record": {
    journal: (journal) =>
      instead(journal, {
        write: () => Promise.resolve(),
        find: () => undefined,
        delivered: () => [],
        openIn: () => [],
      }),
  },
  "a lost create is sent again at once": { transport: sendsAgain },
  "a delete does nothing": { verbs: (verbs) => ({ ...verbs, delete: () => Promise.resolve() }) },
  "an update is stored and not sent": {
    verbs: (verbs) => ({ ...verbs, update: (_id, state, inputs) => Promise.resolve({ ...state, ...inputs }) }),
  },
  "a failure quotes a secret": { verbs: (verbs) => ({ ...verbs, ...quoting(verbs) }) },
  "an update gets the previous inputs": {
    verbs: (verbs) => ({
      ...verbs,
      update: async (id, state) => ({ ...state, ...(await verbs.read(id, state))?.state }),
    }),
  },
  "a create is done twice": {
    verbs: (verbs) => ({
      ...verbs,
      create: async (inputs) => {
        await verbs.create(inputs);
        return verbs.create(inputs);
      },
    }),
  },
  "the outputs of a create are not stored": {
    verbs: (verbs) => ({
      ...verbs,
      create: async (inputs) => ({ ...(await verbs.create(inputs)), state: inputs }),
    }),
  },
};

const quoting = (verbs: Verbs): Pick<Verbs, "update"> => ({
  update: (id, state, inputs) =>
    verbs.update(id, state, inputs).catch((error: unknown) => {
      if (error instanceof Error) error.message += ` (${canary})`;
      throw error;
    }),
});

/** What is broken in a process. */
export const plantedIn = (bug: Bug | undefined): Planted => (bug && inProcess[bug]) ?? {};
