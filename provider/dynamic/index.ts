// Binding 1: what the constant `__provider` string of every resource requires (`pulumi-machines/dynamic`). The engine's
// host for dynamic providers hands over plain values, no URN, no timeout and no cancellation; what is missing travels in
// the hidden `__context` input.
import { randomBytes } from "node:crypto";
import type * as dynamic from "@pulumi/pulumi/dynamic";
import type { Field } from "../../api/schema.ts";
import { clientFor, warnOfExposure } from "../client/connect.ts";
import { check } from "../core/check.ts";
import { readConfig, type Config } from "../client/config.ts";
import { toldOf } from "../client/errors.ts";
import {
  create,
  guardedDiff,
  isRenamed,
  InitializationFailed,
  read,
  refuseToReplace,
  remove,
  update,
  type Caller,
} from "../core/lifecycle.ts";
import { CONTEXT, contextOf, type PreviewCheck, type Resource, type Values } from "../core/resource.ts";
import { run, say } from "./run.ts";
import { dynamicOwnerOf } from "../core/owner.ts";
import { runPreviewCheck as askService } from "../core/previewChecks.ts";
import { hide, withheld } from "../core/redaction.ts";
import { callFunction } from "../core/function.ts";
import { functions, resources } from "../registry.ts";
import { holdsSecret } from "../core/values.ts";

/** Hexadecimal characters by chance, for generated names. */
const randomHex = (characters: number): string =>
  randomBytes(Math.ceil(characters / 2))
    .toString("hex")
    .slice(0, characters);

/** Takes what nobody may read out of a text. */
type Clean = (text: string) => string;

// The host does not tell which values of `env` and the like the program calls secret: none is quoted, whoever words the
// message, but for those so short that they would take other words along.
const cleaner =
  (fields: Readonly<Record<string, Field>>, ...known: readonly Values[]): Clean =>
  (text) =>
    hide(
      known.flatMap((values) => withheld(fields, values)),
      text,
      6,
    );

/** The dynamic provider of a resource type. The host calls it once per process and type. */
export function provider(type: string): dynamic.ResourceProvider {
  const resource = resourceOf(type);
  let configured: (config: Config | Error) => void;
  // The host calls methods before `configure` has finished: each of them waits for this promise.
  const config = new Promise<Config | Error>((resolve) => (configured = resolve));
  const clean = (...known: readonly Values[]): Clean =>
    cleaner({ ...resource.outputFields, ...resource.inputFields }, ...known);
  const caller = async (cleaned: Clean): Promise<Caller> => {
    const found = await config;
    if (found instanceof Error) throw found;
    const tell = (message: string) => say(cleaned(message));
    return { api: clientFor(found, tell), run, progress: tell, warn: tell };
  };
  /** What may be done with the values at hand: none of them that nobody may read is told. */
  const quietly = <T>(known: readonly Values[], work: (caller: () => Promise<Caller>) => Promise<T>): Promise<T> => {
    const cleaned = clean(...known);
    return withoutNoise(cleaned, () => work(() => caller(cleaned)));
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
      // There is a program, and it has said so itself: its process is another one.
      if (!(found instanceof Error)) warnOfExposure(found, () => {});
      run.declare(resource, olds, news);
      const { inputs, problems } = check(resource, olds, news, {
        randomHex,
        run,
        warn: say,
      });
      const reasons = found instanceof Error ? [found.message, ...problems] : problems;
      // The engine prints the value of a property that is named here, secrets included: the path is part of the reason.
      return { inputs, failures: reasons.map((reason) => ({ property: "", reason })) };
    },
    diff: (id, olds: Values, news: Values) =>
      quietly([olds, news], async (caller): Promise<dynamic.DiffResult> => {
        const found = guardedDiff(run, resource, id, olds, news);
        await refuseToReplace(run, resource, id, news, found, caller);
        const { changes, replaces, deleteBeforeReplace } = found;
        // The engine would compare the inputs, and find none that changed, where the resource is lost with what it lay in.
        if (replaces.length > 0) return { changes: true, replaces: [...replaces], deleteBeforeReplace };
        // `changes: true` would switch off replaceOnChanges: left open, the engine compares the inputs itself.
        // What failed after the last change is still to be done, also when a refresh came between.
        const same = { changes: contextOf(olds).unfinished === true || isRenamed(resource, olds, news) };
        return changes.length === 0 ? same : { replaces: [], deleteBeforeReplace };
      }),
    create: (inputs: Values) =>
      quietly([inputs], async (caller) => {
        const { id, state } = await withProvider(inputs, async () => create(resource, inputs, await caller()));
        return { id, outs: state };
      }),
    read: (id, props: Values) =>
      quietly([props], async (caller) => {
        // A refresh brings the state; a get brings nothing but the reference to this provider.
        const state = Object.keys(props).some(
          (name) => !name.startsWith("__") && props[name] !== undefined && name !== "id",
        )
          ? props
          : undefined;
        const found = await read(resource, id, state, await caller());
        if (found) return { id, props: found.state, inputs: found.inputs };
        if (state) return {};
        throw new Error(`there is no ${resource.name} ${JSON.stringify(id)}; its id has the form ${resource.id.form}`);
      }),
    update: (id, olds: Values, news: Values) =>
      quietly([olds, news], async (caller) => ({
        outs: await withProvider(news, async () => update(resource, id, olds, news, await caller())),
      })),
    delete: (id, props: Values) => quietly([props], async (caller) => remove(resource, id, props, await caller())),
  };
}

/**
 * The state of an object that is there but not as it should be must name its provider too: the host adds that only to the
 * state of a success, and without it the object could be neither refreshed nor deleted.
 */
async function withProvider<T>(inputs: Values, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { __provider: reference } = inputs;
    if (error instanceof InitializationFailed && reference !== undefined) error.properties["__provider"] = reference;
    throw error;
  }
}

/** An answer of the service to a question of preview, about one input. */
export interface Finding {
  readonly property: string;
  readonly message: string;
  /** True where it is no reason to fail: check tells the user, if it is about something new. */
  readonly isWarning?: boolean;
}

/** Warns, before anything is sent, of what is unsafe in the configuration of a program. What is wrong with it, check tells. */
export function warnOfConfiguration(get: (key: string) => string | undefined, warn: (message: string) => void): void {
  let config: Config;
  try {
    config = readConfig(get, process.env);
  } catch {
    return;
  }
  warnOfExposure(config, warn);
}

/** The questions of a type that can be asked once all inputs they need are known. */
export const questionsOf = (type: string): readonly Pick<PreviewCheck, "needs" | "uses">[] =>
  resourceOf(type).previewChecks;

/**
 * Asks the service one question of a type. A failure to ask is no reason to fail: it is told to `warn`.
 * @param index position in {@link questionsOf}
 * @param inputs what the question needs and uses, by input or by path
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
    // Check says what is wrong with the configuration, once per resource.
    return null;
  }
  const problem = await askService(resource, question, nested(inputs), owner, {
    api: clientFor(config, warn),
    run,
    warn,
  });
  if (!problem) return null;
  const { path, message, isWarning } = problem;
  return { property: String(path[0]), message, ...(isWarning ? { isWarning } : {}) };
}

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

/** A function as a program calls it. */
export interface Called {
  /** What the function answers; `undefined` in place of a value that is not known in a preview. */
  readonly answer: Values;
  /** Whether the answer holds what is secret by its nature. */
  readonly isSecret: boolean;
  /** Whether there is an answer: in a preview, a function that acts has none. */
  readonly isKnown: boolean;
}

/** Calls a function over the same client that the resources use. */
export async function invoke(
  name: string,
  args: Values,
  get: (key: string) => string | undefined,
  { isPreview, say }: { readonly isPreview: boolean; readonly say: (message: string) => void },
): Promise<Called> {
  const called = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (!called) throw new Error(`pulumi-machines has no function ${JSON.stringify(name)}`);
  const cleaned = cleaner(called.inputFields, args);
  const tell = (message: string): void => say(cleaned(message));
  const api = clientFor(readConfig(get, process.env), tell);
  const answer = await withoutNoise(cleaned, () =>
    callFunction(called, args, { api, progress: tell, preview: isPreview ? "unknown" : undefined }),
  );
  const isKnown = !isPreview || called.look === undefined;
  return {
    answer: isKnown ? answer : {},
    isSecret: Object.entries(answer).some(([key, value]) => holdsSecret(called.outputFields[key], value)),
    isKnown,
  };
}

/** Whose an object of a program is. */
export const ownerInProgram = dynamicOwnerOf;

/** Key under which findings and the rest of the context travel. */
export const contextKey = CONTEXT;

function resourceOf(type: string): Resource {
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  if (!resource)
    throw new Error(
      `pulumi-machines has no resource type ${JSON.stringify(type)}; is the installed version older than the stack?`,
    );
  return resource;
}

/** The host prints the stack of every error beside its message: ours say what is wrong, where in our code is noise. */
async function withoutNoise<T>(cleaned: Clean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof InitializationFailed) Object.assign(error, { reasons: error.reasons.map(cleaned) });
    // One failure may be that of many: what they all wait for is asked once.
    if (!told.has(error)) error.message = error instanceof InitializationFailed ? error.message : toldOf(error);
    told.add(error);
    error.message = cleaned(error.message);
    error.stack = "";
    throw error;
  }
}

/** Errors whose message names where to read on. */
const told = new WeakSet<Error>();
