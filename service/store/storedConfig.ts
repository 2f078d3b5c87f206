// A configuration, as the caches store it.
import type { MachineConfig } from "../../api/machineConfig.ts";

// Longer ones are parsed each time they are needed: an object takes several times the memory of its text.
const longestParsed = 4096;

/** The configuration of a version: its text, and the object once it is needed. */
export class StoredConfig {
  readonly text: string;
  #parsed: MachineConfig | undefined;

  constructor(text: string, parsed?: MachineConfig) {
    this.text = text;
    if (text.length <= longestParsed) this.#parsed = parsed;
  }

  get parsed(): MachineConfig {
    const parsed = this.#parsed ?? (JSON.parse(this.text) as MachineConfig);
    if (this.text.length <= longestParsed) this.#parsed = parsed;
    return parsed;
  }

  /** Its approximate size in characters of memory. */
  get weight(): number {
    return this.text.length <= longestParsed ? 4 * this.text.length : this.text.length;
  }
}
