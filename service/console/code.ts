// The generator of `pulumi-machines import`, for objects that the console shows. It is a bundle of its own, because the code of
// the provider is above the service, and most services never show a program. It runs as a worker thread (codeWorker.ts). This file
// has what the two send each other.

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
export interface Wanted {
  /** Name of its resource type: `Machine`. */
  readonly type: string;
  /** Its id, as `pulumi import` takes it: `shop/3d8d413b29d089`. */
  readonly id: string;
  /** Whether everything in it is wanted, which only an App allows. */
  readonly isWhole: boolean;
  /** Base URL of the service, for the configuration of the stack. */
  readonly endpoint: string;
}

/** The same, with the way to read it. */
export interface CodeQuery extends Wanted {
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

/** The object as the answer of the route has it. */
export interface WrittenCode {
  /** JSON of the answer, an object, without the property `curl`. */
  readonly json: Uint8Array;
  /** {@link ObjectCode.path} */
  readonly path: string;
}

/** What the worker gets: a job with its number, and the answers to the reads of the job; undefined for a read that failed. */
export type ToWorker =
  | { readonly kind: "write"; readonly job: number; readonly wanted: Wanted }
  | {
      readonly kind: "answer";
      readonly read: number;
      readonly answer: (Omit<ReadAnswer, "text"> & { readonly bytes: Uint8Array }) | undefined;
    };

/** What the worker sends: reads, then the end of the job. `status` is undefined if the job failed because of a bug. */
export type FromWorker = { readonly job: number } & Message;

type Message =
  | { readonly kind: "read"; readonly read: number; readonly wanted: Read }
  | { readonly kind: "written"; readonly code: WrittenCode }
  | { readonly kind: "failed"; readonly status: number | undefined; readonly message: string };
