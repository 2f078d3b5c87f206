// The terminals of Machines: a WebSocket for each, which anyone may open who may also run commands in the Machine.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { WebSocketServer } from "ws";
import type { Context } from "../context.ts";
import { findMachine, subjectOf } from "../lifecycle/machines.ts";
import { Refusal, refuse } from "../refusal.ts";
import { runningMachineOf } from "../rules/exec.ts";
import type { MachineRow } from "../store/rows.ts";
import type { Noted } from "./app.ts";
import { commandText, Terminal } from "./terminal.ts";
import { terminalOperation, terminalProtocol } from "./terminalProtocol.ts";
import { upgradeOf } from "./upgrades.ts";
import { requireRole } from "../rules/roles.ts";

// A terminal needs two connections and a process.
const [mostOfService, mostOfOrganization, mostOfMachine] = [100, 50, 10];
/** A client splits what is pasted. */
const longestMessage = 2 ** 16;
/** Programs have this long to end when the service ends. */
const closingMs = 3000;

/** What the route needs. */
export interface TerminalRoute {
  /** Whether the token or the session of a request is still valid. */
  readonly isValid: (request: FastifyRequest) => boolean;
  /** Records something about a request. */
  readonly record: (request: FastifyRequest, noted: Noted) => void;
}

/** Adds the route. */
export function addTerminals(app: FastifyInstance, context: Context, { isValid, record }: TerminalRoute): void {
  const server = new WebSocketServer({
    ...{ noServer: true, maxPayload: longestMessage, perMessageDeflate: false },
    handleProtocols: () => terminalProtocol,
  });
  const open = new Map<Terminal, { readonly machine: string; readonly org: number }>();
  let isClosing = false;
  app.addHook("preClose", async () => {
    isClosing = true;
    for (const terminal of open.keys()) terminal.end("leaving", "the service ends");
    await allWithin(
      closingMs,
      [...open.keys()].map(({ finished }) => finished),
    );
    for (const socket of server.clients) socket.terminate();
  });

  /** The Machine of a request, if a terminal may be opened in it. */
  const machineFor = (request: FastifyRequest): MachineRow => {
    const { caller, session, headers } = request;
    // Every browser sends it with a WebSocket, and pages of other origins are refused by it.
    if (session && headers.origin === undefined)
      throw refuse(403, "a terminal with the cookie of the console needs the header origin of its page");
    requireRole(caller, "operate");
    const params = request.params as Readonly<Record<string, unknown>>;
    const machine = runningMachineOf({ context, caller, params });
    if (!context.runtime.terminal) throw notReal(context);
    const all = [...open.values()];
    const ofMachine = all.filter((one) => one.machine === machine.id).length;
    const ofOrganization = all.filter(({ org }) => org === caller.org).length;
    if (open.size >= mostOfService) throw refuse(429, `the service has ${mostOfService} open terminals; close one`);
    if (ofOrganization >= mostOfOrganization)
      throw refuse(429, `the organization has ${mostOfOrganization} open terminals; close one`);
    if (ofMachine >= mostOfMachine) throw refuse(429, `the machine has ${mostOfMachine} open terminals; close one`);
    return machine;
  };

  app.get(
    "/local/apps/:app_name/machines/:machine_id/terminal",
    { config: { operation: terminalOperation } },
    (request, reply) => {
      const { id } = machineFor(request);
      const upgrade = upgradeOf(request.raw);
      const offered = request.headers["sec-websocket-protocol"]?.split(/, */) ?? [];
      if (!upgrade || !offered.includes(terminalProtocol))
        throw new Refusal(
          426,
          { error: `a terminal is a WebSocket with the subprotocol ${terminalProtocol}` },
          { upgrade: "websocket" },
        );
      if (isClosing) throw refuse(503, "the service ends");
      void reply.hijack();
      request.isNoted = true;
      server.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (socket) => {
        const terminal = new Terminal({
          socket,
          clock: context.clock,
          open: async (asked) => {
            const { store, runtime } = context;
            // What the request was checked against must be true, and durable.
            if (store.unsure) await store.unsure;
            await store.unsettled;
            const machine = findMachine(context, id);
            if (machine?.state !== "started" || !runtime.terminal) throw notStarted(machine?.state);
            return runtime.terminal(subjectOf(context, machine), asked);
          },
          isValid: () => isValid(request),
          reason: () => {
            const state = findMachine(context, id)?.state;
            return state === "started" ? undefined : notStarted(state).message;
          },
          opened: (words, refusal) =>
            record(request, { status: refusal?.status ?? 101, ms: reply.elapsedTime, about: commandText(words) }),
          ended: (how, ms) => record(request, { status: 101, ms, about: `ended: ${how}` }),
          failed: (error) => request.log.warn({ err: error, machine: id }, "a terminal"),
        });
        open.set(terminal, { machine: id, org: request.caller.org });
        void terminal.finished.then(() => open.delete(terminal));
      });
    },
  );
}

const notStarted = (state = "destroyed"): Refusal =>
  refuse(412, `failed_precondition: machine is not started, currently ${state}`);

const notReal = ({ runtime }: Context): Refusal =>
  refuse(412, `failed_precondition: the ${runtime.name} runtime has no terminals; run one command after the other`);

/** Waits for all, at most that long. */
async function allWithin(ms: number, all: readonly Promise<unknown>[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([Promise.allSettled(all), late]);
  clearTimeout(timer);
}
