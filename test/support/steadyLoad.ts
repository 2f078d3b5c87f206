// Requests without a pause, by connections that are kept and by new ones. Each that gets no complete answer is lost: nothing is repeated.
import { once } from "node:events";
import { Agent, request as send, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent as SecureAgent, request as sendSecurely } from "node:https";

/** A load. */
export interface Load {
  /** The addresses that are requested in turn; the name in each is that of the header `Host`. */
  readonly targets: readonly {
    readonly port: number;
    readonly host: string;
    readonly path: string;
    readonly ca?: string;
  }[];
  readonly requests: number;
  /** Clients that keep their connection, and as many that do not. */
  readonly clients: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** What every answer must be like. */
  readonly isRight: (status: number, text: string) => boolean;
}

/** What came of it. */
export interface Outcome {
  answered: number;
  /** Connections that were made. */
  connections: number;
  /** Milliseconds of the longest request. */
  longest: number;
  /** Why requests were lost. */
  readonly lost: string[];
}

/** Starts a load; `outcome` counts while it runs. */
export function steadyLoad({ targets, requests, clients, headers = {}, isRight }: Load) {
  const outcome: Outcome = { answered: 0, connections: 0, longest: 0, lost: [] };
  let begun = 0;
  const client = async (isKept: boolean, number: number): Promise<void> => {
    const settings = { keepAlive: isKept, maxSockets: 1 };
    const agents = { plain: new Agent(settings), secure: new SecureAgent(settings) };
    while (begun < requests) {
      const target = targets[(begun++ + number) % targets.length];
      if (!target) return;
      const { port, host, path, ca } = target;
      const from = performance.now();
      try {
        const shared = { host: "127.0.0.1", port, path, headers: { host, ...headers } };
        const asked =
          ca === undefined
            ? send({ ...shared, agent: agents.plain })
            : sendSecurely({ ...shared, agent: agents.secure, servername: host, ca });
        asked.once("socket", (socket) => {
          if (socket.connecting) outcome.connections++;
        });
        asked.end();
        const [answer] = (await once(asked, "response")) as [IncomingMessage];
        let text = "";
        for await (const part of answer) text += String(part);
        if (isRight(answer.statusCode ?? 0, text)) outcome.answered++;
        else outcome.lost.push(`${answer.statusCode} ${text.slice(0, 200)}`);
      } catch (error) {
        outcome.lost.push(`${isKept ? "kept" : "new"} ${host} ${String(error)}`);
        // Where nothing listens, the others would be lost within a moment.
        await sleep(10);
      }
      outcome.longest = Math.max(outcome.longest, performance.now() - from);
    }
    agents.plain.destroy();
    agents.secure.destroy();
  };
  const all = Array.from({ length: clients }, (_, i) => [client(true, i), client(false, i)]).flat();
  return { outcome, done: Promise.all(all).then(() => outcome) };
}
