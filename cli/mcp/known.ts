// The secrets that a session knows: no answer quotes them, wherever they come from.
import { isObject } from "../../api/schema.ts";
import { configKeys } from "../../provider/client/config.ts";
import type { Machine } from "../../provider/client/machine.ts";
import { hide, leavesIn, linesOf, type Withheld } from "../../provider/core/redaction.ts";
import { secretIn } from "../../policy/core/secretText.ts";
import { secretsOf } from "../drift/comparison.ts";
import { openState } from "../drift/openState.ts";
import type { openConfig } from "../pulumi.ts";
import { deploymentIn, heldIn, isSealed, listIn, readState } from "../stackState.ts";

type Config = NonNullable<Machine["config"]>;

const source = "the output of `pulumi stack export`";

/** Variables of the environment that hold a secret of Pulumi or of the provider. */
const variables = [configKeys.token.environment, "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE"];

/** Values that are secret, by their texts: each is kept once. */
export class KnownSecrets {
  readonly #found = new Map<string | number, Withheld>();

  constructor(env: NodeJS.ProcessEnv) {
    for (const name of variables) this.add([{ value: env[name] ?? "", isCertain: true }]);
  }

  /** Adds values. A log, like every list of lines, has those with several lines in parts. */
  add(values: Iterable<Withheld>): void {
    for (const one of [...values].flatMap((whole) => [whole, ...linesOf(whole)]))
      if (one.value !== "" && (one.isCertain || !this.#found.has(one.value))) this.#found.set(one.value, one);
  }

  /** Adds the secrets of a stack's configuration. */
  addConfig(config: Awaited<ReturnType<typeof openConfig>>): void {
    this.add([...config.values()].flatMap(({ value, isSecret }) => (isSecret ? [{ value, isCertain: true }] : [])));
  }

  /** Adds the secrets of a state. @param exported the output of `pulumi stack export --show-secrets` */
  addState(exported: string): void {
    this.add(openState(readState(exported, source)).resources.flatMap(secretsOf));
    // Outputs of the stack, and resources of other providers: their schemas are not known here.
    const others = listIn(deploymentIn(exported, source), "resources").filter((found) => heldIn(found) === undefined);
    this.add(others.flatMap(openedIn));
  }

  /** A value without them: in each of its texts. Names of properties are those of schemas. */
  without<T>(value: T): T {
    const texts = leavesIn(value).filter((leaf) => typeof leaf === "string");
    // All texts at once: each secret has a dozen of encodings, and to compute these for every text would take seconds.
    const hidden = hide(this.#found.values(), texts.join(between)).split(between);
    const cleaned = hidden.length === texts.length ? hidden : texts.map((text) => hide(this.#found.values(), text));
    let next = 0;
    return replaced(value, () => cleaned[next++] ?? "") as T;
  }
}

/** No secret of a configuration or a state holds this, and it is no part of a word. */
const between = "\u0000";

/** The same value with other texts, in the order of its leaves. */
function replaced(value: unknown, text: () => string): unknown {
  if (typeof value === "string") return text();
  if (Array.isArray(value)) return value.map((inner) => replaced(inner, text));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replaced(inner, text)]));
}

/** The values of a Machine's variables that look secret, by their names or by themselves: its program may print them. */
export const secretVariables = (config: Config | undefined): readonly Withheld[] =>
  [config, ...(config?.processes ?? []), ...(config?.containers ?? [])].flatMap((part) =>
    Object.entries(part?.env ?? {}).flatMap(([name, value]) =>
      secretIn(name, value, { names: [], entropy: 4.2 }) === undefined ? [] : [{ value, isCertain: true }],
    ),
  );

/** The texts and numbers in the decrypted values of a state. Those inside an object only may be secret. */
function openedIn(value: unknown): readonly Withheld[] {
  if (Array.isArray(value)) return value.flatMap(openedIn);
  if (!isObject(value)) return [];
  const { plaintext } = value;
  if (!isSealed(value) || typeof plaintext !== "string") return Object.values(value).flatMap(openedIn);
  const opened: unknown = JSON.parse(plaintext);
  return leavesIn(opened).map((leaf) => ({ value: leaf, isCertain: !isObject(opened) }));
}
