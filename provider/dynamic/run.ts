// The run of the engine that this process serves: Pulumi starts the host of dynamic providers once for each run.
import { printable } from "../../api/printable.ts";
import { processJournal } from "../core/journal.ts";
import { Run } from "../core/run.ts";

/** Prints a message for the user. Standard error is the only way from here; the host shows it as a message of the stack. */
export const say = (message: string): void => console.error(printable(message));

/** The knowledge about the run. */
export const run = new Run(() => processJournal(say));
