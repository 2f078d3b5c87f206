// The engine's requests about resources, translated for core, and its answers for the engine.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { MachinesError } from "../client/errors.ts";
import { matches } from "../core/diff.ts";
import { ownerOf } from "../core/owner.ts";
import { withheld } from "../core/redaction.ts";
import { CONTEXT, contextOf, type Resource, type Values } from "../core/resource.ts";
import { formerOwnersIn } from "../core/run/program.ts";
import * as verbs from "../core/verbs/index.ts";
import { diffResponse, encoded, encodedInputs, failure, fieldsIn, marksOver } from "./answers.ts";
import type { Connection } from "./connection.ts";
import { initializationFailed } from "./failure.ts";
import { cameToBeSecret, decode, isSecretAt, mergedMarks, movedMarks, type Decoded, type Marks } from "./marshal.ts";
import { parsePath } from "./propertyPath.ts";
import type { Host, Provider } from "./protocol.ts";
import { withoutSecrets, type Telling } from "./redaction.ts";
import { about, proposalOf, seeded, stateIn } from "./requests.ts";
import type { Subject } from "./spelling.ts";
import type { TakesViews, ViewsOf } from "./views.ts";

/** The verbs of resources. */
export function verbsOf(
  { engine, wording, runs }: Host,
  connection: Connection,
): Pick<Provider, "check" | "diff" | "create" | "read" | "update" | "delete"> {
  /**
   * Values in core's form, with the engine's facts about the resource in their context. `pulumi do` gives everything of a
   * type the same URN, so then the context has no owner.
   */
  const owned = (values: Values, urn: string, name: string): Values => ({
    ...values,
    [CONTEXT]: { ...contextOf(values), ...(connection.hasState ? { owner: ownerOf(urn) } : {}), name },
  });
  /** A state in core's form: an alias may have renamed the resource since it was written. */
  const ownedState = (state: Values, urn: string, name: string): Values => {
    const formerOwners = connection.hasState ? formerOwnersIn(state, ownerOf(urn)) : [];
    if (formerOwners.length === 0) return owned(state, urn, name);
    return owned({ ...state, [CONTEXT]: { ...contextOf(state), formerOwners } }, urn, name);
  };
  /** Notes the secrets of a resource, which another one may use. */
  const noteSecrets = (resource: Resource, ...all: readonly Decoded[]): void => {
    for (const { values, marks } of all) runs.current.noteSecrets(withheld(fieldsIn(resource), values, marks));
  };
  /** A state that says whose views it has, after a request that has reported them. */
  const withViews = (state: Values, { views }: verbs.Caller, urn: string): Values => {
    if (!views) return state;
    const { viewsOf: _, ...context } = contextOf(state);
    return { ...state, [CONTEXT]: views.isKept ? { ...context, viewsOf: urn } : context };
  };
  /** Does work whose failure may leave an object with a state. */
  const partlyFailing = async <T>(
    resource: Resource,
    [marks, before]: readonly [now: Marks | undefined, before?: Marks | undefined],
    request: Telling & Subject & { getUrn(): string },
    caller: verbs.Caller,
    work: () => Promise<T>,
  ): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof verbs.InitializationFailed)) throw error;
      // A partial change leaves earlier values in place, and their secrets stay secret.
      const kept = mergedMarks(before, movedMarks(before, error.movedFrom));
      const state = encoded(resource, withViews(error.properties, caller, request.getUrn()), mergedMarks(marks, kept));
      const worded = (text: string) => wording(request, withoutSecrets([state], fieldsIn(resource), text));
      throw initializationFailed(error, state, connection.isRefreshedFirst(resource), worded);
    }
  };

  /** How core is called for a request of a resource that may have views. */
  const callerWithViews = (
    request: Telling & Subject & TakesViews & { getTimeout(): number },
    resource: Resource,
    marks: Marks | undefined,
    kind: ViewsOf["kind"] = "change",
  ): verbs.Caller => {
    const worded = (message: string) => wording(request, message);
    const status = (urn: string, message: string) => engine.status(urn, worded(message));
    const isKept = connection.isConfigured && connection.config.fleetViews;
    const views = resource.previewViews
      ? connection.views.of(request, { resource, marks, worded, status, kind, isKept })
      : undefined;
    return connection.caller(request, request.getTimeout(), views);
  };

  /** Whether an update has to bring the views of a resource into the state, or to remove them. A refresh does not. */
  const mustReport = ({ previewViews }: Resource, state: Values): boolean =>
    previewViews !== undefined &&
    connection.isDeclaring &&
    connection.hasViews &&
    connection.config.fleetViews !== (contextOf(state).viewsOf !== undefined);

  return {
    async check(request) {
      const { resource, urn, name } = about(request);
      const [olds, news] = [decode(request.getOlds()), decode(request.getNews())];
      connection.isDeclaring = true;
      connection.views.declare(urn);
      noteSecrets(resource, olds, news);
      const caller = connection.isConfigured ? connection.caller(request) : undefined;
      const { inputs, problems } = await verbs.check(
        resource,
        owned(olds.values, urn, name),
        owned(news.values, urn, name),
        {
          randomHex: seeded(request.getRandomseed_asU8(), urn),
          run: runs.current,
          state: stateIn(request),
          proposal: proposalOf(request),
          isSecret: (path) => isSecretAt(news.marks, path),
          warn: (message) => engine.warn(urn, wording(request, message)),
          caller,
          observer: caller,
        },
      );
      const response = new proto.CheckResponse();
      response.setInputs(encodedInputs(resource, inputs, marksOver(olds, news)));
      response.setFailuresList(problems.map((problem) => failure(wording(request, problem))));
      return response;
    },

    async diff(request) {
      const { resource, urn, name } = about(request);
      await connection.requireService();
      const [olds, news] = [decode(request.getOlds()), decode(request.getNews())];
      refuseRenamed(olds.values, urn);
      const state = ownedState(olds.values, urn, name);
      const wanted = owned(news.values, urn, name);
      const found = await verbs.diff(resource, request.getId(), state, wanted, connection.caller(request));
      const ignored = request.getIgnorechangesList().map(parsePath);
      const changes = found.changes.filter(
        ({ path }) => !ignored.some((pattern) => pattern.length <= path.length && matches(pattern, path)),
      );
      // Otherwise the engine would keep values in plain text that the state has in plain text, after an import for
      // instance.
      const sealed = cameToBeSecret(olds.marks, news.marks, olds.values)
        .filter((path) => !changes.some((change) => matches(change.path, path)))
        .map((path) => ({ path, kind: "update", replaces: false }) as const);
      const response = diffResponse([...changes, ...sealed], found.deleteBeforeReplace);
      if (found.mustRewrite || mustReport(resource, olds.values))
        response.setChanges(proto.DiffResponse.DiffChanges.DIFF_SOME);
      return response;
    },

    async create(request) {
      const { resource, urn, name } = about(request);
      const { values, marks } = decode(request.getProperties());
      noteSecrets(resource, { values, marks });
      const inputs = owned(values, urn, name);
      const caller = callerWithViews(request, resource, marks);
      const response = new proto.CreateResponse();
      if (request.getPreview()) {
        const { id = "", state } = await verbs.previewCreate(resource, inputs, caller);
        response.setId(id);
        response.setProperties(encodedInputs(resource, state, marks));
        return response;
      }
      const created = await partlyFailing(resource, [marks], request, caller, () =>
        verbs.create(resource, inputs, caller),
      );
      noteSecrets(resource, { values: created.state, marks });
      response.setId(created.id);
      response.setProperties(encoded(resource, withViews(created.state, caller, urn), marks));
      response.setRefreshBeforeUpdate(connection.isRefreshedFirst(resource));
      return response;
    },

    async read(request) {
      const { resource, urn, name } = about(request);
      const [properties, given] = [decode(request.getProperties()), decode(request.getInputs())];
      noteSecrets(resource, properties, given);
      // A refresh passes the state; an import and a get pass only the id.
      const known = Object.keys(properties.values).some((key) => properties.values[key] !== undefined);
      const state = known ? ownedState(properties.values, urn, name) : undefined;
      const id = request.getId();
      const marks = mergedMarks(properties.marks, given.marks);
      const kind = known ? "refresh" : "import or get";
      const caller = callerWithViews(request, resource, marks, kind);
      const found = await verbs.read(resource, id, state, caller);
      const response = new proto.ReadResponse();
      if (!found && !state) throw verbs.notFound(resource, id);
      if (!found) await caller.views?.remove();
      if (!found) return response;
      noteSecrets(resource, { values: found.state, marks });
      // A refresh adds no owner to a state without one: it would show as a change of a resource that a program only
      // reads.
      const encodedState = contextOf(properties.values).owner === undefined ? encodedInputs : encoded;
      response.setId(found.id);
      // A refresh adds no views to a state without any.
      const isReported = !known || caller.views?.isKept === false;
      const stored = isReported ? withViews(found.state, caller, urn) : afterStackRename(found.state, caller, urn);
      response.setProperties(encodedState(resource, stored, marks));
      response.setInputs(encodedInputs(resource, found.inputs, marks));
      // A resource that a program only reads has no state id, and is read in every run anyway.
      const isOwn = contextOf(properties.values).stack !== undefined;
      response.setRefreshBeforeUpdate(connection.isRefreshedFirst(resource) && isOwn);
      return response;
    },

    async update(request) {
      const { resource, urn, name } = about(request);
      const [olds, news] = [decode(request.getOlds()), decode(request.getNews())];
      noteSecrets(resource, olds, news);
      const [old, inputs] = [ownedState(olds.values, urn, name), owned(news.values, urn, name)];
      const marks = marksOver(olds, news);
      const caller = callerWithViews(request, resource, marks);
      const response = new proto.UpdateResponse();
      if (request.getPreview()) {
        const state = await verbs.previewUpdate(resource, old, inputs, caller);
        response.setProperties(encodedInputs(resource, state, marks));
        return response;
      }
      const state = await partlyFailing(resource, [marks, olds.marks], request, caller, () =>
        verbs.update(resource, request.getId(), old, inputs, caller),
      );
      noteSecrets(resource, { values: state, marks });
      response.setProperties(encoded(resource, withViews(state, caller, urn), marks));
      response.setRefreshBeforeUpdate(connection.isRefreshedFirst(resource));
      return response;
    },

    async delete(request) {
      const { resource, urn, name } = about(request);
      const { values, marks } = decode(request.getProperties());
      const state = ownedState(values, urn, name);
      const caller = callerWithViews(request, resource, marks);
      // The engine would delete the fleet alone, and then fail because its views have no parent.
      if (request.getOldViewsList().length === 0) refuseRenamed(values, urn);
      await verbs.remove(resource, request.getId(), state, caller);
      // The views of its replacement have the same URN, and stay.
      if (!connection.views.isDeclared(urn)) await caller.views?.remove();
      return undefined;
    },
  };
}

/** The path of types and the name: a URN without stack and project. */
const inStack = (urn: string): string => urn.split("::").slice(2).join("::");

/** `pulumi stack rename` renames the views with their fleet, but not what its state says of them. */
function afterStackRename(state: Values, { views }: verbs.Caller, urn: string): Values {
  const { viewsOf = urn } = contextOf(state);
  const isStack = viewsOf !== urn && inStack(viewsOf) === inStack(urn) && views !== undefined && views.old.length > 0;
  return isStack ? { ...state, [CONTEXT]: { ...contextOf(state), viewsOf: urn } } : state;
}

/**
 * Refuses a resource with views that an alias, `state rename` or `state move` has renamed: the engine (3.274) leaves its views in the
 * state as those of the old URN, and then fails every update that deletes it.
 */
function refuseRenamed(state: Values, urn: string): void {
  const { viewsOf = urn } = contextOf(state);
  if (viewsOf === urn) return;
  const name = viewsOf.split("::").slice(3).join("::");
  throw new MachinesError(
    "refused",
    `the Fleet ${JSON.stringify(name)} was renamed or moved, and the state lists its Machines as resources, which the engine cannot rename. Run \`npx pulumi-machines forget-views\`, and then this again; the next up lists them again.`,
  );
}
