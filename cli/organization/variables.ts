// The variables of a program.
import { Identifiers } from "./names.ts";
import { referredTo, textOf, type Program } from "./program.ts";

/** How a language names variables. */
interface Spelling {
  readonly spell: (name: string) => string;
  readonly reserved: readonly string[];
}

/** The variables of a program by what they hold. Resources that no other refers to have none. */
export class Variables {
  readonly #resources = new Map<string, string>();
  readonly #settings = new Map<string, string>();
  readonly #secrets = new Set<string>();

  constructor({ settings, sections }: Program, { spell, reserved }: Spelling) {
    const used = referredTo({ settings, sections, remarks: [] });
    const blocks = sections.flatMap((section) => section.blocks);
    // In a loop, only the resources of one row are in scope, so that their types are names enough.
    const inLoops = blocks.flatMap((block) =>
      block.is === "loop" ? block.body.filter(({ key }) => used.has(key)) : [],
    );
    const columns = blocks.flatMap((block) =>
      block.is === "loop" ? (block.rows[0] ?? []).map(([name]) => spell(name)) : [],
    );
    const identifiers = new Identifiers(spell, [...reserved, ...inLoops.map(({ type }) => spell(type)), ...columns]);
    for (const { key, type } of inLoops) this.#resources.set(key, spell(type));
    for (const { key, isSecret } of settings)
      if (isSecret) this.#secrets.add(key);
      else this.#settings.set(key, identifiers.take(key));
    for (const block of blocks)
      if (block.is === "resource" && used.has(block.resource.key))
        this.#resources.set(block.resource.key, identifiers.take(textOf(block.resource.name), block.resource.type));
  }

  /** The variable of a resource; undefined if nothing refers to it. */
  of(key: string): string | undefined {
    return this.#resources.get(key);
  }

  /** The variable of a value of the configuration; undefined for a secret, which is read where it is used. */
  ofSetting(key: string): string | undefined {
    return this.#secrets.has(key) ? undefined : this.#settings.get(key);
  }
}
