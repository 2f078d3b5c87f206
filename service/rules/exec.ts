// Operations inside a running Machine: commands, processes, signals, memory (docs/interface.md#commands,
// docs/interface.md#processes-and-signals, docs/interface.md#memory). The rules check the
// request, and the runtime carries it out.
import { sizeOf } from "../../api/machineConfig.ts";
import type { machines } from "../../api/machines.ts";
import { changeMachine, configOf, subjectOf } from "../lifecycle/machines.ts";
import { refuse } from "../refusal.ts";
import type { Command, Outcome, Subject } from "../runtime/runtime.ts";
import { wordsOf } from "../runtime/shellWords.ts";
import type { MachineRow } from "../store/rows.ts";
import { liveMachineOf } from "./find.ts";
import { Deferred, type Input, type Rules } from "./rule.ts";

type InsideRules = Pick<
  Rules<typeof machines>,
  "exec" | "processes" | "signal" | "getMemory" | "setMemory" | "reclaimMemory"
>;

// ASSUMED: a command may take at most 60 seconds, which is also the default
// (docs/interface.md#commands).
const longestExec = 60;

/** The Machine of the path, which must run. ASSUMED: operations that need a running Machine are 412 for others. */
export function runningMachineOf(input: Parameters<typeof liveMachineOf>[0]): MachineRow {
  const machine = liveMachineOf(input);
  if (machine.state !== "started")
    throw refuse(412, `failed_precondition: machine is not started, currently ${machine.state}`);
  return machine;
}

const subject = (input: Input): Subject => subjectOf(input.context, runningMachineOf(input));

const memoryAnswer = ({ context }: Input, machine: Subject) =>
  new Deferred(async () => {
    const { limitMb, availableMb } = await context.runtime.memory(machine);
    return { limit_mb: limitMb, available_mb: availableMb };
  });

/** Runs a command while its client is connected: the request is held like a wait. */
async function execute(
  { context, caller, onGone }: Pick<Input, "context" | "caller" | "onGone">,
  machine: Subject,
  command: Omit<Command, "signal">,
) {
  const over = new AbortController();
  const subject = `exec/${context.ids.nonce()}`;
  let look = (): Outcome | undefined => undefined;
  const found = (answer: () => Outcome | undefined): void => {
    look = answer;
    context.waits.wake([subject]);
  };
  // ASSUMED: a command that does not end in time is 408.
  const late = () => refuse(408, `deadline_exceeded: the command did not end within ${command.timeoutMs / 1000} s`);
  // Once the request is held: one that is refused must not have run anything.
  const begin = async (): Promise<void> => {
    try {
      const outcome = await context.runtime.exec(machine, { ...command, signal: over.signal });
      found(() => outcome);
    } catch (error) {
      found(() => {
        throw error;
      });
    }
  };
  try {
    const hold = {
      subject,
      org: caller.org,
      look: () => look(),
      timeoutMs: command.timeoutMs,
      late,
      onGone,
      held: () => void begin(),
    };
    const { stdout, stderr, exitCode, exitSignal } = await context.waits.hold(hold);
    return { stdout, stderr, exit_code: exitCode, exit_signal: exitSignal };
  } finally {
    over.abort();
  }
}

/** The rules of these operations. */
export const exec: InsideRules = {
  exec(input) {
    const { body } = input;
    const machine = subject(input);
    const words = body.command ?? wordsOf(body.cmd ?? "");
    if (words.length === 0) throw refuse(400, "invalid command, got nothing, must be a command");
    if (body.machine && body.container !== undefined) throw refuse(400, "invalid container, is exclusive with machine");
    const { container } = body;
    if (container !== undefined && !machine.config.containers?.some(({ name }) => name === container))
      throw refuse(
        400,
        `invalid container, the machine has none of the name ${JSON.stringify(container.slice(0, 80))}`,
      );
    const timeoutMs = (body.timeout || longestExec) * 1000;
    return new Deferred(() => execute(input, machine, { words, stdin: body.stdin ?? "", timeoutMs }));
  },

  processes(input) {
    const { context, query } = input;
    const machine = subject(input);
    const field = query.sort_by ?? "pid";
    const direction = query.order === "desc" ? -1 : 1;
    return new Deferred(async () => {
      const processes = [...(await context.runtime.processes(machine))];
      return processes
        .sort((a, b) => direction * (a[field] < b[field] ? -1 : a[field] > b[field] ? 1 : 0))
        .map((process) => ({ ...process, listen_sockets: [...process.listen_sockets] }));
    });
  },

  signal(input) {
    input.context.runtime.signal(subject(input), input.body.signal);
    return { ok: true };
  },

  getMemory: (input) => memoryAnswer(input, subject(input)),

  setMemory(input) {
    const { context, body } = input;
    const machine = runningMachineOf(input);
    const config = configOf(context, machine);
    const configured = sizeOf(config).memoryMb;
    const most = Math.max(configured, config.guest?.max_memory_mb ?? configured);
    // ASSUMED: a memory limit may be up to the Machine's memory, or the maximum in its configuration; more is 400.
    if (body.limit_mb > most) throw refuse(400, `invalid limit_mb, got ${body.limit_mb}, cannot exceed ${most}`);
    const limited = subjectOf(context, changeMachine(context, machine, { memory_limit_mb: body.limit_mb }));
    context.runtime.limitMemory(limited);
    return memoryAnswer(input, limited);
  },

  reclaimMemory(input) {
    const { context, body } = input;
    const machine = subject(input);
    return new Deferred(async () => ({ actual_mb: await context.runtime.reclaim(machine, body.amount_mb) }));
  },
};
