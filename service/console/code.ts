// The generator of `pulumi-machines import`, for objects that the console shows. It is a bundle of its own, because the code of
// the provider is above the service, and most services never show a program.
import { createRequire } from "node:module";
import { refuse } from "../refusal.ts";
import { builtFile } from "./built.ts";

/** A read of the interface, in the name of the user of the console. */
export interface Read {
  /** Path below the address of the service, with its query. */
  readonly path: string;
  /** Milliseconds that the answer may take. */
  readonly timeout: number;
}

/** The answer to a read. */
export interface ReadAnswer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The object whose code is wanted. */
export interface CodeQuery {
  /** Name of its resource type: `Machine`. */
  readonly type: string;
  /** Its id, as `pulumi import` takes it: `shop/3d8d413b29d089`. */
  readonly id: string;
  /** Whether everything in it is wanted, which only an App allows. */
  readonly isWhole: boolean;
  /** Base URL of the service, for the configuration of the stack. */
  readonly endpoint: string;
  /** Sends a read with the rights of the user. @throws if there is no answer in time */
  readonly send: (read: Read) => Promise<ReadAnswer>;
}

/** An object as code. Values of secrets are never part of it. */
export interface ObjectCode {
  /** The program in each language; null if there is none, for which `remarks` have the reason. */
  readonly programs: Readonly<Record<"typescript" | "python" | "go" | "yaml", string>> | null;
  /** Commands for the shell that set what the program and the import read from the configuration of the stack. */
  readonly settings: readonly string[];
  /** The command for the shell that imports what the program declares. */
  readonly importCommand: string;
  /** Path of the request that shows the object, or the list that contains it; encoded. */
  readonly path: string;
  /** Sentences about what is not in the program, and about what may belong to another stack. */
  readonly remarks: readonly string[];
}

/** What the bundle exports. */
export interface CodeBundle {
  /**
   * The code of an object.
   * @throws Error with `statusCode`: 400 for a query that is not allowed, the status of a refused read, or 503 if a read failed
   */
  codeOf(query: CodeQuery): Promise<ObjectCode>;
}

/** The bundle. */
function bundleFile(): string {
  const found = builtFile("code.js");
  if (found !== undefined) return found;
  throw refuse(
    500,
    "dist/console/code.js is missing: install the package machines-service again, or run `npm run build` in a clone",
  );
}

let loaded: CodeBundle | undefined;

/** Loads the bundle, once. @throws Refusal 500 if the file is missing */
export function codeBundle(): CodeBundle {
  if (!loaded) {
    const file = bundleFile();
    loaded = createRequire(file)(file) as CodeBundle;
  }
  return loaded;
}
