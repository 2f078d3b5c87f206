// What a check of a service has found.

/** What one check has found. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly about: string;
  readonly state: "ok" | "warning" | "problem";
  /** What was found, as a sentence without a full stop. */
  readonly text: string;
  /** What to do; undefined if it is all right. */
  readonly advice?: string;
}

/** Something that is as it should be. */
export const ok = (about: string, text: string): Finding => ({ about, state: "ok", text });

/** Something that may be wanted. */
export const warning = (about: string, text: string, advice: string): Finding => ({
  ...{ about, state: "warning", text, advice },
});

/** Something that must be corrected. */
export const problem = (about: string, text: string, advice: string): Finding => ({
  ...{ about, state: "problem", text, advice },
});
