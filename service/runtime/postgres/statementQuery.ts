// One statement in the protocol of PostgreSQL, with bounds. The server takes a single statement this way, and sends rows only as they
// are requested, so that a result of any size never enters the memory of the service.
import type pg from "pg";
import { StatementFailed, type StatementAnswer } from "../postgresEngine.ts";

// ASSUMED: an answer of the console has at most 1,000 rows and about 2 million characters, and 50,000 characters of each value.
const mostRows = 1000;
const mostCharacters = 2_000_000;
const longestValue = 50_000;
/** Rows of one request, and of one for rows that are not shown. */
const batch = 5;
const batchOfRest = 100;
/** Bytes that the server may send for one of them: a value can have a GB. */
const mostReceived = 4 * 2 ** 20;

/** The connection, with what its types leave out. */
type Connection = pg.Connection & {
  sendCopyFail(reason: string): void;
  execute(config: { readonly portal: string; readonly rows: number }): void;
  parse(query: { readonly name: string; readonly text: string; readonly types: readonly string[] }): void;
  bind(config: object): void;
  describe(config: { readonly type: "P"; readonly name: string }): void;
};

type Result = Omit<StatementAnswer, "columns">;

/** A statement that the driver submits. Its members are those that the driver calls. */
export class StatementQuery implements pg.Submittable {
  readonly result: Promise<Result>;
  /** The columns of the answer. */
  fields: readonly pg.FieldDef[] = [];
  /** Whether the server has understood the text. */
  isUnderstood = false;
  readonly #text: string;
  readonly #isWrite: boolean;
  readonly #rows: (string | null)[][] = [];
  #resolve = (_: Result): void => {};
  #reject = (_: unknown): void => {};
  #connection: Connection | undefined;
  #characters = 0;
  #received = 0;
  #seen = 0;
  #isMore = false;
  #isCut = false;
  #command = "";
  #count: number | undefined;

  constructor(text: string, isWrite: boolean) {
    this.#text = text;
    this.#isWrite = isWrite;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: pg.Connection): void {
    const on = connection as Connection;
    this.#connection = on;
    on.stream.on("data", this.#measure);
    on.once("parseComplete", this.#understood);
    on.once("copyOutResponse", this.#refuseCopy);
    on.parse({ name: "", text: this.#text, types: [] });
    on.bind({ portal: "", statement: "", values: [] });
    on.describe({ type: "P", name: "" });
    this.#ask();
  }

  readonly #understood = (): void => {
    this.isUnderstood = true;
  };

  readonly #measure = ({ length }: Buffer): void => {
    this.#received += length;
    if (this.#received > mostReceived)
      this.#break(`its rows are too large: a few of them have more than ${mostReceived / 2 ** 20} MiB`);
  };

  readonly #refuseCopy = (): void => this.#break("COPY sends data to a client; here it can only copy on the server");

  /** Ends the connection: the server has to stop sending. */
  #break(reason: string): void {
    this.#end();
    this.#reject(new StatementFailed(reason, { isUnderstood: this.isUnderstood }));
    this.#connection?.stream.destroy();
  }

  #end(): void {
    this.#connection?.stream.removeListener("data", this.#measure);
    this.#connection?.removeListener("parseComplete", this.#understood);
    this.#connection?.removeListener("copyOutResponse", this.#refuseCopy);
  }

  #ask(): void {
    this.#received = 0;
    this.#connection?.execute({ portal: "", rows: this.#isMore ? batchOfRest : batch });
    this.#connection?.flush();
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.fields = fields;
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.#seen++;
    this.#isMore ||= this.#rows.length >= mostRows || this.#characters >= mostCharacters;
    if (this.#isMore) return;
    const row = fields.map((value) => (value === null || value.length <= longestValue ? value : this.#cut(value)));
    this.#characters += row.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    this.#rows.push(row);
  }

  #cut(value: string): string {
    this.#isCut = true;
    return value.slice(0, longestValue);
  }

  handlePortalSuspended(): void {
    // A statement that changes something has to come to its end: the rest of its rows may be changes too.
    if (this.#isMore && !this.#isWrite) this.#connection?.sync();
    else this.#ask();
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    // The last number of `INSERT 0 3` is that of the rows.
    const [numbers = ""] = /[ \d]*$/.exec(text) ?? [];
    this.#command = text.slice(0, text.length - numbers.length);
    if (this.fields.length === 0) this.#count = Number(numbers.split(" ").at(-1));
    this.#connection?.sync();
  }

  handleEmptyQuery(): void {
    this.#connection?.sync();
  }

  handleCopyInResponse(connection: Connection): void {
    connection.sendCopyFail("COPY gets no data from here");
  }

  handleCopyData(): void {
    // It was refused.
  }

  handleError(error: unknown): void {
    this.#end();
    this.#reject(error);
    this.#connection?.sync();
  }

  handleReadyForQuery(): void {
    this.#end();
    const count = this.#count ?? this.#seen;
    const { fields } = this;
    this.#resolve({
      rows: this.#rows,
      isMore: this.#isMore,
      isCut: this.#isCut,
      command: this.#command === "" && fields.length > 0 ? "SELECT" : this.#command,
      count,
    });
  }
}
