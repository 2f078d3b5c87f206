// The run of the engine that this process serves: Pulumi starts the host of dynamic providers once for each run.
import { printable } from "../../api/printable.ts";
import { processJournal } from "../core/journal.ts";
import { Runs } from "../core/run/run.ts";

/** Prints a message for the user. Standard error is the only way from here; the host shows it as a message of the stack. */
export const say = (message: string): void => console.error(printable(message));

/** The runs of this process. */
export const runs = new Runs(() => processJournal(say));
