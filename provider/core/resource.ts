// The declaration of a resource type: one object, from which both bindings, the schema, the SDK and the tests are derived.
import type { z } from "zod";
import type { KeyedQueue } from "../../api/keyedQueue.ts";
import { fieldOf, isObject, type Field } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import type { ErrorCode } from "../client/errors.ts";
import type { Memo } from "../client/memo.ts";
import type { IdFormat } from "./ids.ts";
import type { Journal } from "./journal.ts";
import type { Facts } from "./observations/planFile.ts";
import type { Listing } from "./listing.ts";
import type { Withheld } from "./redaction.ts";
import type { Deletions } from "./run/deletions.ts";
import type { StateIds } from "./run/stateIds.ts";
import { UNKNOWN } from "./values.ts";
import type { View, Views, ViewStep } from "./views.ts";

/** Property values in the engine's form: plain JSON, with {@link UNKNOWN} for unknown values. */
export type Values = Record<string, unknown>;

/**
 * R1. An optional input is one of:
 * - `default`: if omitted it has its documented default;
 * - `computed`: if omitted, the service decides and the diff ignores it;
 * - `behaviour`: it controls this provider and is not sent.
 */
export type InputKind = "default" | "computed" | "behaviour";

/** Marks an input that controls the provider and is never sent (R1). */
export const behaviour = <S extends z.ZodType>(schema: S): S => schema.meta({ kind: "behaviour" });

/**
 * Marks an input for which leaving it out has no meaning of its own (R1). A `passing` one is omitted from an import. A
 * `creation` one matters only when the object is created, and cannot be read back (R7).
 */
export const computed = <S extends z.ZodType>(
  schema: S,
  life: "passing" | "lasting" | "creation" = "lasting",
): z.ZodOptional<S> =>
  schema.optional().meta({ kind: "computed", passing: life === "passing", creation: life === "creation" });

/** The kind of an input. */
export const kindOf = (field: Field): InputKind => (field.meta["kind"] as InputKind | undefined) ?? "default";

/** Metadata that travels with the inputs of a resource under {@link CONTEXT}; no diff compares it. */
export interface Context {
  /** The owner: a hash of project, stack, type, parent and name. */
  readonly owner?: string;
  /** The resource's name in the program. It is the base of a generated name. */
  readonly name?: string;
  /** The resource's URN. Only in the inputs of the program. */
  readonly urn?: string;
  /** `customTimeouts` as Go durations, if the engine does not pass them itself. */
  readonly timeouts?: Readonly<Partial<Record<"create" | "update" | "delete", string>>>;
  /** True when the name was generated. */
  readonly autonamed?: boolean;
  /** Computed inputs that the program omitted. The values that a read returns for them are outputs, not inputs. */
  readonly left?: readonly string[];
  /** URN of the resource whose views the state has. Only in states. */
  readonly viewsOf?: string;
  /** True while a step after creation or change is still to be repeated: the next update has work even without changes. */
  readonly unfinished?: boolean;
  /**
   * True for a replacement that the user has undone with `pulumi-machines undo-replacement`, which alone writes it: it may
   * be deleted.
   */
  readonly discard?: boolean;
  /**
   * True after a refresh in the dynamic binding that left the engine the inputs from before an update that failed. In states alone,
   * until the next update.
   */
  readonly inputsKept?: boolean;
  /** Random identifier of the state of a resource, because stacks of two backends may have the same names. Only in states. */
  readonly stack?: string;
  /**
   * Owners that the resource had before an alias renamed it. An object that it replaced before still has one of them.
   * In states alone.
   */
  readonly formerOwners?: readonly string[];
  /**
   * Whether the program protects the cluster of the object from deletion, as the last run that declared both saw it. In
   * states alone, because a destroy sends nothing else.
   */
  readonly inProtected?: boolean;
  /** The owner of that cluster. In states alone. */
  readonly inCluster?: string;
  /** Findings of the service at preview. Check judges them, because it knows which inputs are new. */
  readonly findings?: readonly unknown[];
  /**
   * The resources whose id an input is, by the input's path (`config.mounts.0.volume`). A preview does not know the id of
   * a new resource. Only in previews of the dynamic binding: the engine does not say so to a plugin.
   */
  readonly sources?: Readonly<Record<string, Source>>;
}

/** A resource of the program whose id an input is. */
export interface Source {
  readonly owner: string;
  /** Its name in the program. */
  readonly name: string;
}

/** Key of the {@link Context}; the engine hides properties that begin with two underscores. */
export const CONTEXT = "__context";

/** The context in inputs or state. */
export const contextOf = (values: Values): Context => (isObject(values[CONTEXT]) ? values[CONTEXT] : {});

/** An object that only one resource of a program can use, and the input that names it. */
export interface UsedAlone {
  readonly path: Problem["path"];
  /** What it is (`volume`). */
  readonly kind: string;
  /** Its id with its App (`shop/vol_1`), or {@link UNKNOWN}. */
  readonly id: string;
  /** An input that must be the same in the resource that declares the object. */
  readonly agreesOn: string;
  /** The resource that declares the object, if its id is unknown. */
  readonly source?: Source;
}

/** A finding that is only a warning; preview continues. */
export interface Warning {
  readonly warning: string;
}

/** What an update will do, for the user of a preview. */
export interface Note {
  readonly note: string;
}

/** What a check at preview may know of the run. */
export interface PreviewRun {
  readonly program: Pick<ProgramInfo, "isInState" | "inputsInState">;
  readonly stateIds: Pick<StateIds, "all">;
}

/** What handlers may know of the program that a run has. */
export interface ProgramInfo {
  /** How many resources it has declared so far. */
  readonly size: number;
  /** Whether an owner has an object in the state. */
  isInState(owner: string | undefined): boolean;
  /** The id of an owner's object in the state, as far as the run knows. */
  idInState(owner: string | undefined): string | undefined;
  /** The inputs of an owner's object in the state; empty if there is none. */
  inputsInState(owner: string | undefined): Values;
  /** Whether the engine deletes an owner's object before it creates the replacement. */
  isReplacedFirst(owner: string | undefined, id: string): boolean;
}

/** A check with the service, which preview runs when all required inputs are known; it only reads, and warns if it fails. */
export interface PreviewCheck<Inputs = Values> {
  /** Inputs it needs. The answer is about the first of them; without any, about the first that it uses. */
  readonly needs: readonly (keyof Inputs & string)[];
  /** Inputs, or paths into them, that it uses if they are given. */
  readonly uses?: readonly ((keyof Inputs & string) | `${keyof Inputs & string}.${string}`)[];
  /**
   * Whether it is asked in every preview, and not only where the input that it is about is new or changed. Only that of a fleet's
   * rollout is, because any input can change its steps.
   */
  readonly isAboutAll?: true;
  /** Why the inputs cannot work, or may not, or what the update will do. */
  ask(
    inputs: Inputs,
    api: Api,
    owner: string | undefined,
    run: PreviewRun,
  ): Promise<string | Warning | Note | undefined>;
}

/** A problem with the inputs, by property path. */
export interface Problem {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The inputs it concerns, if it can be checked while others are unknown. */
  readonly about?: readonly string[];
}

/** An answer of the service at preview: a problem, or a warning after which preview continues. */
export interface Finding extends Problem {
  readonly isWarning: boolean;
  /** Whether it is a preview, which only says what the update will do. */
  readonly isNote?: boolean;
  /** The kind of failure, where it is not about an input. */
  readonly code?: ErrorCode;
}

/** The part of the engine's run that handlers may use. */
export interface RunInfo {
  readonly program: ProgramInfo;
  readonly stateIds: StateIds;
  /** The started creates, on disk. */
  readonly journal: Journal;
  /** Keys of objects without a tag that this run created; see exactlyOnce.ts. */
  readonly createdKeys: Set<string>;
  /** Creates that run one after the other, by place; see exactlyOnce.ts. */
  readonly creates: KeyedQueue;
  readonly deletions: Deletions;
  /** What the handlers of a family remember during the run, by a key of theirs. */
  readonly memo: Memo;
  /** The secrets that the run has met, so that no message quotes one that a program printed. */
  secrets(): readonly Withheld[];
}

/** Arguments of every handler. */
export interface Call {
  /** Facts about the run. */
  readonly run: RunInfo;
  /** The service, bound to this operation's deadline and cancellation. */
  readonly api: Api;
  /** Reports progress while waiting. */
  readonly progress: (message: string) => void;
  /** Warns the user; the message stays visible after the run. */
  readonly warn: (message: string) => void;
  /** Removes the secrets that the run knows from a text; undefined where no text is reported. */
  readonly hideSecrets?: ((text: string) => string) | undefined;
  /**
   * Whether the state of an input keeps secret only what is secret in the program: then it must not get back values that the program
   * has removed.
   */
  readonly marksInputsOnly?: boolean | undefined;
  /** The parts of the resource that the engine shows and stores as resources of their own, if it can. */
  readonly views?: Views | undefined;
  /**
   * Refuses the object if it differs from what the preview of a plan saw; undefined without a plan. It takes a part of the facts, as
   * they are found under a lease, for instance.
   */
  readonly confirm?: (found: Facts) => void;
}

/** Arguments of a handler that says what the service has of an object, for plans. */
export interface Observing extends Call {
  /**
   * The fact about something that several resources can claim (R12); "none" if it does not exist. `found` is the digest that the
   * service has of it. What this run has written itself counts as it was before.
   */
  readonly claimed: (claim: string, found: string | undefined) => string;
  /** Whether lists may be shared with other objects: in a preview. An update reads again. */
  readonly mayShareLists: boolean;
  readonly owner: string | undefined;
}

/** A resource of this program that claims something (R12). */
export interface Claimant {
  /** Its name in the program. */
  readonly name: string;
  readonly owner: string;
  /** The value in its inputs; undefined if it is not among them. */
  readonly value: string | undefined;
}

/** Arguments of a handler that releases a claim. */
export interface GivingUp {
  /** Another resource of this program with the same claim (R12). */
  readonly otherClaimant: (claim: string) => Claimant | undefined;
}

/** The claims of a resource, each with the value that its inputs give it. */
export type Claims = Readonly<Record<string, string | undefined>>;

/**
 * The object as a handler found it: outputs, and the inputs that can be read back, as the service reports them.
 * `undefined` means not reported. `null` means that the written value no longer exists (R7).
 */
type Live<I extends z.ZodObject, O extends z.ZodObject> = { [K in keyof z.output<I>]?: unknown } & z.output<O>;
/** A property, or a path into one with `*` for any item. */
type Path<I extends z.ZodObject> = keyof z.output<I> & string;

type Repeated<I extends z.ZodObject> = Path<I> | `${Path<I>}.${string}`;

/**
 * How the objects of the type are listed, or why they cannot be. `partOf`: there is one for every object of this other
 * type, with the same id, and these are listed.
 */
type Listed =
  | { readonly list: Listing; readonly unlisted?: never; readonly partOf?: never }
  | { readonly unlisted: string; readonly list?: never; readonly partOf?: string };

/** The declaration of a resource type. */
export type Definition<I extends z.ZodObject, O extends z.ZodObject, Parts extends string> = Declaration<I, O, Parts> &
  Listed;

interface Declaration<I extends z.ZodObject, O extends z.ZodObject, Parts extends string> {
  /** Type name in PascalCase. */
  readonly name: string;
  /** One sentence for the docs. */
  readonly summary: string;
  /** The longer description in the docs, if any. */
  readonly description?: string;
  readonly inputs: I;
  readonly outputs: O;
  readonly id: IdFormat<Parts>;
  /** Why an object outside the state cannot be read; imports and gets are refused with it. */
  readonly noImport?: string;
  /**
   * The parent whose presence a 404 is judged by (R8), and the part of the id that names it; the App in `app` when left
   * out.
   */
  readonly within?: { readonly kind: "app" | "cluster"; readonly part: Parts };
  /**
   * The part of other types' ids that names an object of this one (`database`). Objects in it are lost when it is
   * replaced.
   */
  readonly namedAs?: string;
  /** Inputs (or paths into them) whose change replaces the resource. */
  readonly replaceOn: readonly (Path<I> | `${Path<I>}.${string}`)[];
  /**
   * The property that makes an update, or a replacement, necessary although no input has changed: something is still to be
   * done.
   */
  readonly pendingWhen?: (
    state: Partial<z.output<I> & z.output<O>>,
    next: Partial<z.output<I>>,
  ) => { readonly property: keyof (z.output<I> & z.output<O>) & string; readonly replaces: boolean } | undefined;
  /**
   * Whether the engine reads the object before each diff, where it can: an update repairs it then without a refresh. Only
   * fleets have it, because what others do to one Machine of many must not last until the next refresh.
   */
  readonly refreshBeforeUpdate?: boolean;
  /**
   * The claims by name that other resources can have too (R12): `secret shop/KEY`. A claim that another resource of the
   * program has is not released with this one.
   */
  readonly claims?: (inputs: Partial<z.output<I>>) => Claims;
  /** Inputs that together must be unique in the service; when all of them stay, a replacement deletes first (R4). */
  readonly uniqueBy?: readonly Path<I>[];
  /**
   * Outputs that an update may move, with the inputs (or paths into them) whose change moves them; `"any"` is every input
   * that is sent. Preview knows all other outputs.
   */
  readonly dependsOn?: {
    readonly [Output in keyof z.output<O>]?: "any" | readonly (Path<I> | `${Path<I>}.${string}`)[];
  };
  /**
   * Outputs that repeat values of inputs (or paths into them). If one of these, or a part of it, is secret, the output
   * is secret too.
   */
  readonly derivedFrom?: {
    readonly [Output in keyof z.output<O>]?: Repeated<I> | readonly Repeated<I>[];
  };
  /**
   * True if it writes its owner into the service, to claim something there. A state keeps the owner then: without it, a renamed or
   * moved resource would not know its own mark.
   */
  readonly marksOwner?: true;
  /** True if old and new would use the same other object (R4). */
  readonly sharesWith?: (old: Values, next: Values) => boolean;
  /**
   * Objects that only one resource of the program can use, by the input that names each. Only Machines have it: `claims` are
   * texts, and a preview does not know the id of a new volume, so the resource that declares it is compared.
   */
  readonly usesAlone?: (inputs: Values) => readonly UsedAlone[];
  /** How a name is generated if none is given; `random` appends random characters (R4). */
  readonly autoname?: {
    readonly property: Path<I>;
    readonly maxLength: number;
    readonly separator: "-" | "_";
    readonly random: boolean;
  };
  /**
   * R9: a replacement destroys data, so check refuses it unless `allowDataLoss` is true or `deletionProtection` is false.
   * The latter, if it exists, also guards deletion.
   */
  readonly losesData?: string;
  /**
   * How to change the input without losing the data, for the refusal (R9). Only volumes have it, because their way
   * depends on the input.
   */
  readonly keepDataBy?: (input: Path<I>) => string | undefined;
  /**
   * R11: why the object must not be replaced, according to reads of the service; called when a diff replaces it. Only Apps have
   * it: an App can hold volumes that the program does not declare, and `losesData` guards only what it declares.
   */
  readonly refuseToReplace?: (
    id: Record<Parts, string>,
    next: Partial<z.output<I>>,
    api: Api,
  ) => Promise<string | undefined>;
  /**
   * Problems that the types do not show; unknown parts of the inputs are absent. `isMade`: the inputs belong to an
   * existing object.
   */
  readonly validate?: (inputs: Partial<z.output<I>>, isMade: boolean) => readonly Problem[];
  /** R3: a refused change, with an alternative. Both sides are checked inputs. */
  readonly refuse?: (old: Partial<z.output<I>>, next: Partial<z.output<I>>) => Problem | undefined;
  /**
   * R3: the same for a change that only the state shows, so diff refuses it. After a failed update, the old inputs that the
   * engine sends to check are those of that update.
   */
  readonly refuseFromState?: (state: Partial<z.output<I>>, next: Partial<z.output<I>>) => Problem | undefined;
  readonly previewChecks?: readonly PreviewCheck<z.output<I>>[];
  /**
   * How the views of the resource will change, for a preview. Only fleets have it: other types have no parts that the engine
   * shows as resources of their own.
   */
  readonly previewViews?: (
    inputs: Partial<z.output<I>>,
    old: readonly View[],
    around: { readonly api: Api; readonly owner: string | undefined; readonly run: PreviewRun },
  ) => Promise<readonly ViewStep[]>;
  /**
   * Warnings about a change, in preview too; `old` is the whole state. Only Machines have it: what the warning is about is in
   * the state, which `previewChecks` do not see.
   */
  readonly warnings?: (old: Partial<z.output<I> & z.output<O>>, next: Partial<z.output<I>>) => readonly string[];
  /**
   * Outputs, and inputs that a read finds, that must be as the preview saw them when an update with its plan changes the object. They
   * change only if someone changes the object. That it exists always counts.
   */
  readonly observed?: readonly (keyof (z.output<I> & z.output<O>) & string)[];
  /**
   * The same for what a read does not show: the facts, or undefined if the object does not exist. `inputs` is undefined for a deletion.
   * Only types whose facts are not properties have it.
   */
  readonly observe?: (
    args: Observing & {
      id: Record<Parts, string>;
      inputs: Partial<z.output<I>> | undefined;
      state: Partial<z.output<I> & z.output<O>> | undefined;
    },
  ) => Promise<Facts | undefined>;
  /** The part of these facts that the state has, for an object that is deleted: a preview does not see it. */
  readonly remember?: (
    state: Partial<z.output<I> & z.output<O>>,
    /** The digest of a value that may be secret; null if there can be none. */
    digest: (value: unknown) => string | null,
  ) => Facts;
  /** Default deadlines in minutes; 10 where none is given. */
  readonly minutes?: Readonly<Partial<Record<"create" | "update" | "delete", number>>>;

  create(args: Call & { inputs: z.output<I>; owner: string | undefined }): Promise<Live<I, O>>;
  /** Returns undefined, or throws a 404, if the object does not exist. `state` is absent for an import or a get. */
  read(
    args: Call & { id: Record<Parts, string>; state: Partial<z.output<I> & z.output<O>> | undefined },
  ): Promise<Live<I, O> | undefined>;
  update(
    args: Call &
      GivingUp & {
        id: Record<Parts, string>;
        inputs: z.output<I>;
        old: z.output<I> & z.output<O>;
        /** True if a step after the last creation or change failed and is still to be done. */
        unfinished: boolean;
        owner: string | undefined;
        /** Owners that the resource had before it was renamed or moved. What it wrote then may still name them. */
        formerOwners: readonly string[];
      },
  ): Promise<Live<I, O>>;
  delete(
    args: Call &
      GivingUp & {
        id: Record<Parts, string>;
        state: Partial<z.output<I> & z.output<O>>;
        owner: string | undefined;
        /** Owners that the resource had before it was renamed or moved. What it wrote then may still name them. */
        formerOwners: readonly string[];
      },
  ): Promise<void>;
}

/** A definition without its own input and output types. */
type Erased = Declaration<z.ZodObject, z.ZodObject, string> & {
  readonly list?: Listing | undefined;
  readonly unlisted?: string | undefined;
  readonly partOf?: string | undefined;
};

/** The optional members of a definition. */
const defaults = {
  description: undefined,
  noImport: undefined,
  list: undefined,
  unlisted: undefined,
  partOf: undefined,
  within: { kind: "app", part: "app" },
  namedAs: undefined,
  pendingWhen: undefined,
  refreshBeforeUpdate: false,
  claims: undefined,
  marksOwner: undefined,
  uniqueBy: [],
  dependsOn: {},
  derivedFrom: {},
  sharesWith: undefined,
  usesAlone: undefined,
  autoname: undefined,
  losesData: undefined,
  keepDataBy: undefined,
  refuseToReplace: undefined,
  validate: undefined,
  refuse: undefined,
  refuseFromState: undefined,
  previewChecks: [],
  previewViews: undefined,
  warnings: undefined,
  observed: [],
  observe: undefined,
  remember: undefined,
  minutes: {},
} satisfies { readonly [Name in keyof Erased]?: Erased[Name] | undefined };

type Defaults = typeof defaults;

/**
 * A declared resource type as core and the bindings see it: its definition with defaults, and the fields of its
 * schemas.
 */
export type Resource = Omit<Erased, keyof Defaults> & {
  readonly [Name in keyof Defaults]: Defaults[Name] extends undefined
    ? Erased[Name] | undefined
    : NonNullable<Erased[Name]>;
} & {
  readonly inputFields: Readonly<Record<string, Field>>;
  readonly outputFields: Readonly<Record<string, Field>>;
};

/** Whether objects of the type contain others. True for Apps and clusters, whose ids consist only of themselves. */
export const isParent = ({ id, within: { part }, inputFields }: Resource): boolean =>
  id.form === `<${part}>` && inputFields[part]?.meta.format !== "reference";

/** The objects that only one resource of the program can use, as far as they or the resources that declare them are known. */
export const usedAlone = (resource: Resource, inputs: Values): readonly UsedAlone[] =>
  (resource.usesAlone?.(inputs) ?? []).flatMap((used) => {
    if (used.id !== UNKNOWN) return [used];
    const source = contextOf(inputs).sources?.[used.path.join(".")];
    return source === undefined ? [] : [{ ...used, source }];
  });

/** Whether two resources use the same object. */
export const isSameObject = (one: UsedAlone, other: UsedAlone): boolean =>
  one.kind === other.kind && one.id === other.id && one.source?.owner === other.source?.owner;

/** The fields of an object schema. */
export function fieldsOf(schema: z.ZodType): Readonly<Record<string, Field>> {
  const { shape } = fieldOf(schema);
  return shape.kind === "object" ? shape.fields : {};
}

/** Declares a resource type. The compiler checks its types here; all users share one general type. */
export function defineResource<I extends z.ZodObject, O extends z.ZodObject, Parts extends string>(
  definition: Definition<I, O, Parts>,
): Resource {
  return {
    ...defaults,
    ...definition,
    inputFields: fieldsOf(definition.inputs),
    outputFields: fieldsOf(definition.outputs),
  } as unknown as Resource;
}
