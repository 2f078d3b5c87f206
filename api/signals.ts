// Signals for a Machine's process (docs/interface.md#processes-and-signals), by name or by number.
import { z } from "zod";

const numbers = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
} as const;

/** Name of a signal. */
export type SignalName = keyof typeof numbers;

/** The number of every signal. */
export const signalNumbers: Readonly<Record<SignalName, number>> = numbers;

const named = <const Names extends readonly [SignalName, ...SignalName[]]>(names: Names) =>
  z.enum(names).meta({ spellings: Object.fromEntries(names.map((name) => [String(numbers[name]), name])) });

/** A signal that can be sent to a running Machine. */
export const signalName = named(Object.keys(numbers) as [SignalName, ...SignalName[]]);

/** A signal that requests a Machine to stop. */
export const stopSignal = named(["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM"]);
