// Binding 1: the module that the constant `__provider` string of every resource requires (`pulumi-machines/dynamic`).
// The engine's host for dynamic providers passes plain values, without URN, timeout and cancellation. They travel in
// the hidden `__context` input instead.
import "../client/requireNode.ts";
import { randomBytes } from "node:crypto";
import type * as dynamic from "@pulumi/pulumi/dynamic";
import type { Field } from "../../api/schema.ts";
import { onBehalfOf } from "../client/asker.ts";
import { warnOfExposure } from "../client/connect.ts";
import { readConfig, type Config } from "../client/config.ts";
import { messageForUser, withDocs } from "../client/errors.ts";
import {
  CONTEXT,
  contextOf,
  type Finding as Found,
  type PreviewCheck,
  type Resource,
  type Values,
} from "../core/resource.ts";
import { tracked } from "../core/engineEnd.ts";
import { endWithTheEngine, engineEnded } from "./engine.ts";
import { runs, say } from "./run.ts";
import { dynamicOwnerOf } from "../core/owner.ts";
import { checkConnection, runPreviewCheck as askService } from "../core/previewChecks.ts";
import { hide, withheld, type Withheld } from "../core/redaction.ts";
import { callFunction } from "../core/function.ts";
import { functions, resources } from "../registry.ts";
import { holdsSecret } from "../core/values.ts";
import * as verbs from "../core/verbs/index.ts";

/** Random hexadecimal characters, for generated names. */
const randomHex = (characters: number): string =>
  randomBytes(Math.ceil(characters / 2))
    .toString("hex")
    .slice(0, characters);

/** The token of a resource or a function, as the plugin has it. */
const tokenOf = (name: string): string => `machines:index:${name}`;

/** Removes secrets from a text. */
type Clean = (text: string) => string;

type Fields = Readonly<Record<string, Field>>;

// The host does not report which values of `env` and the like are secret for the program, so messages quote none of
// them.
const secretsIn = (fields: Fields, known: readonly Values[]): Withheld[] =>
  known.flatMap((values) => withheld(fields, values, "unreported"));

const cleaner =
  (found: readonly Withheld[]): Clean =>
  (text) =>
    hide([...found, ...runs.current.writeOnlySecrets()], text);

/** The dynamic provider of a resource type. The host calls it once per process and type. */
export function provider(type: string): dynamic.ResourceProvider {
  endWithTheEngine();
  const resource = resourceOf(type);
  let configured: (config: Config | Error) => void;
  // The host calls methods before `configure` has finished: each of them waits for this promise.
  const config = new Promise<Config | Error>((resolve) => (configured = resolve));
  const fields = { ...resource.outputFields, ...resource.inputFields };
  /** Notes the secrets of a resource, which another one may use. */
  const note = (...known: readonly Values[]): Withheld[] => {
    const found = secretsIn(fields, known);
    runs.current.noteSecrets(found);
    return found;
  };
  /**
   * Does work for the given values; no message has the secrets in them. Requests name the resource. The host does not pass on
   * the URN that the engine sends, so it is known only if the program declares the resource in this run. Otherwise the type and
   * the id stand for it.
   */
  const quietly = <T>(id: string, known: readonly Values[], work: (caller: verbs.Caller) => Promise<T>): Promise<T> => {
    const run = runs.current;
    const cleaned = cleaner(note(...known));
    const print = (message: string) => say(cleaned(message));
    const asker = run.program.of(contextOf(known.at(-1) ?? {}).owner)?.urn ?? `${tokenOf(type)}::${id}`;
    const working = onBehalfOf(asker, () =>
      withoutNoise(cleaned, async () => {
        const found = await config;
        return work({
          get api() {
            if (found instanceof Error) throw found;
            return run.clientFor(found, print);
          },
          ...{ run, progress: print, warn: print, hideSecrets: cleaned },
          ...{ hasStoredConfiguration: true, marksInputsOnly: true },
          signal: engineEnded,
        });
      }),
    );
    return tracked(working);
  };
  return {
    configure: (request) => {
      try {
        configured(readConfig((key) => request.config.get(`machines:${key}`), process.env));
      } catch (error) {
        configured(error as Error);
      }
      return Promise.resolve();
    },
    check: async (olds: Values, news: Values) => {
      const found = await config;
      // The program's process has already shown the warning.
      if (!(found instanceof Error)) warnOfExposure(found, () => {});
      note(news);
      const checked = (observer?: verbs.Caller) =>
        verbs.check(resource, olds, news, {
          ...{ randomHex, run: runs.current, warn: say, observer },
          // Only a preview has findings, and the engine passes no seed to the host.
          isNameOpen: contextOf(news).findings !== undefined,
        });
      const isPlanned = runs.current.planFile.isUsed || runs.current.planFile.note !== undefined;
      const { inputs, problems } =
        isPlanned && !(found instanceof Error) ? await quietly("", [news], checked) : await checked();
      const reasons = found instanceof Error ? [messageForUser(found), ...problems] : problems;
      // The engine prints the value of a named property, even of a secret: the path is part of the reason.
      return { inputs, failures: reasons.map((reason) => ({ property: "", reason })) };
    },
    diff: (id, olds: Values, news: Values) =>
      quietly(id, [olds, news], async (caller): Promise<dynamic.DiffResult> => {
        const found = await verbs.diff(resource, id, olds, news, caller);
        const { changes, replaces, deleteBeforeReplace } = found;
        // The engine would compare the inputs and find no change, although the resource was lost with its parent.
        if (replaces.length > 0) return { changes: true, replaces: [...replaces], deleteBeforeReplace };
        // `changes: true` would switch off replaceOnChanges. Left undefined, the engine compares the inputs itself. A
        // step that failed after the last change is still to be done, also after a refresh in between.
        // The plugin writes no reference to this provider, and without one the host can neither refresh nor delete.
        const isOfPlugin = olds["__provider"] === undefined;
        if (changes.length === 0) return { changes: isOfPlugin || found.mustRewrite };
        // The engine cannot see that something else than an input differs, such as a Machine of a fleet.
        const isInput = changes.some(({ path }) => resource.inputFields[String(path[0])] !== undefined);
        // Nor can it compare with the inputs of an update that failed, once they were read.
        const isSeen = isInput && contextOf(olds).inputsKept !== true;
        return { ...(isSeen ? {} : { changes: true }), replaces: [], deleteBeforeReplace };
      }),
    create: (inputs: Values) =>
      quietly("", [inputs], async (caller) => {
        const { id, state } = await withProvider(inputs, () => verbs.create(resource, inputs, caller));
        note(state);
        return { id, outs: state };
      }),
    read: (id, props: Values) =>
      quietly(id, [props], async (caller) => {
        // A refresh passes the state; a get passes only the reference to this provider.
        const state = Object.keys(props).some(
          (name) => !name.startsWith("__") && props[name] !== undefined && name !== "id",
        )
          ? props
          : undefined;
        const found = await verbs.read(resource, id, state, caller);
        if (!found && !state) throw verbs.notFound(resource, id);
        if (!found) return {};
        note(found.state);
        // After an update that failed, the engine has the inputs from before. It would mark those of the failed update by these, so that
        // their new secrets would be in plain text.
        const context = contextOf(found.state);
        if (context.unfinished) return { id, props: { ...found.state, [CONTEXT]: { ...context, inputsKept: true } } };
        return { id, props: found.state, inputs: found.inputs };
      }),
    update: (id, olds: Values, news: Values) =>
      quietly(id, [olds, news], async (caller) => {
        const outs = await withProvider(news, () => verbs.update(resource, id, olds, news, caller));
        note(outs);
        return { outs };
      }),
    delete: (id, props: Values) => quietly(id, [props], (caller) => verbs.remove(resource, id, props, caller)),
  };
}

/**
 * The state of an object whose creation is unfinished must name its provider too. The host adds the name only to the
 * state of a success; without it, the object could be neither refreshed nor deleted.
 */
async function withProvider<T>(inputs: Values, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { __provider: reference } = inputs;
    if (error instanceof verbs.InitializationFailed && reference !== undefined)
      error.properties["__provider"] = reference;
    throw error;
  }
}

/** An answer of the service to a question of preview. */
export interface Finding {
  /** The input that it is about; empty if it is about the service. */
  readonly property: string;
  readonly message: string;
  /** True for a warning: check reports it if it concerns a new value. */
  readonly isWarning?: boolean;
  /** True in a preview, which only says what the update will do. */
  readonly isNote?: boolean;
}

/** Warns of unsafe settings in the configuration before anything is sent. Check reports invalid ones. */
export function warnOfConfiguration(get: (key: string) => string | undefined, warn: (message: string) => void): void {
  let config: Config;
  try {
    config = readConfig(get, process.env);
  } catch {
    return;
  }
  warnOfExposure(config, warn);
}

export { unknownKeys } from "../core/configurationKeys.ts";

/** The questions of a type that can be asked once all inputs they need are known. */
export const questionsOf = (type: string): readonly Pick<PreviewCheck, "needs" | "uses">[] =>
  resourceOf(type).previewChecks;

/**
 * Runs one preview check of a type. A failed request does not fail the preview: `warn` reports it.
 * @param index position in {@link questionsOf}
 * @param inputs the inputs that the check needs and uses, by name or by path
 */
export async function ask(
  type: string,
  index: number,
  inputs: Values,
  owner: string,
  get: (key: string) => string | undefined,
  warn: (message: string) => void,
): Promise<Finding | null> {
  const resource = resourceOf(type);
  const question = resource.previewChecks[index];
  if (!question) return null;
  let config: Config;
  try {
    config = readConfig(get, process.env);
  } catch {
    // Check reports problems of the configuration, once per resource.
    return null;
  }
  const run = runs.current;
  const asking = { api: run.clientFor(config, warn), run, warn };
  const problem = await onBehalfOf(tokenOf(type), () => askService(resource, question, nested(inputs), owner, asking));
  return problem ? finding(problem) : null;
}

/** Asks the service once for each preview whether it can be used. No answer is only a warning, which `warn` shows once. */
export async function askConnection(
  get: (key: string) => string | undefined,
  warn: (message: string) => void,
): Promise<Finding | null> {
  let config: Config;
  try {
    config = readConfig(get, process.env);
  } catch {
    // Check reports problems of the configuration, once per resource.
    return null;
  }
  const run = runs.current;
  const problem = await checkConnection({ api: run.clientFor(config, warn), run });
  if (!problem) return null;
  if (!problem.isWarning) return finding(problem);
  // Only the program's process can show a warning as one: check would print a plain message.
  if (run.problems.isFirst(problem.message)) warn(problem.message);
  return null;
}

const finding = ({ path: [property = ""], message, code, isWarning, isNote }: Found): Finding => ({
  property: String(property),
  message: code === undefined ? message : withDocs(message, code),
  ...(isWarning ? { isWarning } : {}),
  ...(isNote ? { isNote } : {}),
});

/** Values by path, as the values that lie there. */
function nested(byPath: Values): Values {
  const whole: Values = {};
  for (const [path, value] of Object.entries(byPath)) {
    const names = path.split(".");
    const last = names.pop() ?? path;
    let at = whole;
    for (const name of names) at = (at[name] ??= {}) as Values;
    at[last] = value;
  }
  return whole;
}

/** A function as programs see it. */
export interface Called {
  /** The function's result; `undefined` for values that are unknown in a preview. */
  readonly answer: Values;
  /** Whether the result contains values that are always secret. */
  readonly isSecret: boolean;
  /** Whether there is a result: in a preview, a function that acts has none. */
  readonly isKnown: boolean;
}

/** Calls a function with the same client that the resources use. */
export async function invoke(
  name: string,
  args: Values,
  get: (key: string) => string | undefined,
  { isPreview, say }: { readonly isPreview: boolean; readonly say: (message: string) => void },
): Promise<Called> {
  const called = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (!called) throw new Error(`pulumi-machines has no function ${JSON.stringify(name)}`);
  const cleaned = cleaner(secretsIn(called.inputFields, [args]));
  const print = (message: string): void => say(cleaned(message));
  const answer = await withoutNoise(cleaned, async () => {
    const api = runs.current.clientFor(readConfig(get, process.env), print);
    const caller = { api, progress: print, preview: isPreview ? "unknown" : undefined } as const;
    return onBehalfOf(tokenOf(name), () => callFunction(called, args, caller));
  });
  const isKnown = !isPreview || called.look === undefined;
  return {
    answer: isKnown ? answer : {},
    isSecret: Object.entries(answer).some(([key, value]) => holdsSecret(called.outputFields[key], value)),
    isKnown,
  };
}

/** The owner of an object of a program. */
export const ownerInProgram = dynamicOwnerOf;

/** Key of findings and the rest of the context. */
export const contextKey = CONTEXT;

function resourceOf(type: string): Resource {
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  if (!resource)
    throw new Error(
      `pulumi-machines has no resource type ${JSON.stringify(type)}; is the installed version older than the stack?`,
    );
  return resource;
}

/**
 * The host prints the stack of every error beside its message. Our messages state the problem, so the stack is noise.
 */
async function withoutNoise<T>(cleaned: Clean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof verbs.InitializationFailed) Object.assign(error, { reasons: error.reasons.map(cleaned) });
    // Many operations may fail for one reason, so its check is shared.
    if (!printed.has(error))
      error.message = error instanceof verbs.InitializationFailed ? error.message : messageForUser(error);
    printed.add(error);
    error.message = cleaned(error.message);
    error.stack = "";
    throw error;
  }
}

/** Errors whose message already links to the docs. */
const printed = new WeakSet<Error>();

// The class `Release` shares its rules with the plugin.
export * from "../releases/rules.ts";
