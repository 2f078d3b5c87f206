// How the objects of a type are listed, shown and deleted: orphans, promotion and the docs are derived from it.
import type { OperationId } from "../../api/index.ts";
import type { Api } from "../client/api.ts";
import { Memo } from "../client/memo.ts";

/** An object in the service's list. */
export interface ListedObject {
  /** Parts of its id. */
  readonly parts: Readonly<Record<string, string>>;
  /** Name, if it has one beside its id. */
  readonly name?: string | undefined;
  /** RFC 3339 time of creation, if the service reports one. */
  readonly createdAt?: string | undefined;
  /** What the service calls it for good: another object may take its id, as an App its name. */
  readonly identity?: string | undefined;
  /** The Machine that mounts it. */
  readonly mountedBy?: Readonly<Record<"app" | "machineId", string>> | undefined;
  /** Metadata of a Machine, which has our tags. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** One pass over the service. */
export interface Pass {
  readonly api: Api;
  /** Answers that several types need; each is requested once. */
  readonly answers: Memo;
}

/** Begins a pass. */
export const newPass = (api: Api): Pass => ({ api, answers: new Memo() });

/** How to list the objects of a type. */
export interface Listing {
  /** The objects in an App or a cluster. For a type that is an App or a cluster itself: the one of this name. */
  readonly objects: (pass: Pass, place: string) => Promise<readonly ListedObject[]>;
  /** Whether an object exists, if a list cannot show it. `state`: what a state has of it. */
  readonly exists?: (
    api: Api,
    parts: Readonly<Record<string, string>>,
    state?: Readonly<Record<string, unknown>>,
  ) => Promise<boolean>;
  /** The operation that shows one object, or the list that contains it. */
  readonly shownBy: OperationId;
  /** The operation that deletes one object; undefined if there is none. */
  readonly deletedBy: OperationId | undefined;
  /** True if their metadata has our tags, which say who created them. */
  readonly isTagged?: true;
  /** True if the service creates most of them on a schedule. They are compared only on request. */
  readonly isScheduled?: true;
  /** True if they can be listed before their cluster is ready. */
  readonly isListedEarly?: true;
}
