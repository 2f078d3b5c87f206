// The refusal of a request by a rule: a status and a body (docs/interface.md#errors, docs/interface.md#refusals).

/** A refused request. A rule throws it, and everything the rule wrote before is rolled back. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>> = {}) {
    super(typeof body["error"] === "string" ? body["error"] : `refused with ${status}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** `{"error": text}`, with `status` if the platform has a machine-readable one. */
export const refuse = (status: number, error: string, code?: string): Refusal =>
  new Refusal(status, code === undefined ? { error } : { error, status: code });
