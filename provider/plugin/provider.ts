// Binding 2: the engine's gRPC protocol. It unpacks requests, passes them to core, and packs core's results. The families'
// folders declare everything about resources.
import { createHash, randomBytes } from "node:crypto";
import pluginProto from "@pulumi/pulumi/proto/plugin_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import { clientFor, warnOfExposure } from "../client/connect.ts";
import { check, type Surroundings } from "../core/check.ts";
import type { Config } from "../client/config.ts";
import { matches, type Change } from "../core/diff.ts";
import { MachinesError } from "../client/errors.ts";
import {
  confirmStillThere,
  create,
  guardedDiff,
  mustRewriteState,
  InitializationFailed,
  read,
  refuseToReplace,
  remove,
  update,
  warnOf,
  type Caller,
} from "../core/lifecycle.ts";
import { formerOwnersIn, type Run } from "../core/run.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { ownerOf } from "../core/owner.ts";
import { previewCreate, previewUpdate } from "../core/preview.ts";
import { checkConnection, problemsWithValues, runPreviewChecks } from "../core/previewChecks.ts";
import { CONTEXT, contextOf, type Problem, type Resource, type Values } from "../core/resource.ts";
import { withStoredConfiguration } from "../core/storedConfiguration.ts";
import { hasUnknown, located, pathText, withoutUndefined } from "../core/values.ts";
import { callFunction, type MachinesFunction } from "../core/function.ts";
import { functions, resources } from "../registry.ts";

import {
  configFrom,
  configurationChanges,
  configurationProblems,
  currentConfiguration,
  isDefaultProvider,
} from "./configuration.ts";
import { callMethod, constructComponent } from "./component.ts";
import type { Engine } from "./engine.ts";
import { initializationFailed } from "./failure.ts";
import {
  cameToBeSecret,
  decode,
  encode,
  holdsSecret,
  holdsSecretAt,
  isSecretAt,
  mergedMarks,
  withSecrets,
  type Decoded,
  type Marks,
} from "./marshal.ts";
import { listPage } from "./list.ts";
import { parsePath } from "./propertyPath.ts";
import { withheld } from "../core/redaction.ts";
import { withoutSecrets, type Telling } from "./redaction.ts";
import type { Subject } from "./spelling.ts";

/** The process's services for the provider. */
export interface Host {
  readonly engine: Engine;
  /** The package schema, as JSON text. */
  readonly schema: () => string;
  /** A message about a request, as its user may see it. */
  readonly wording: Wording;
  /** The memory of the engine's run. */
  readonly run: Run;
}

/** Words a message about a request: without its secrets, and with the names of the program's language. */
export type Wording = (request: Telling & Subject, message: string) => string;

type Unary<Request, Response> = (request: Request) => Promise<Response> | Response;

/** The methods of the protocol that this provider has. The server answers other methods with "unimplemented". */
export interface Provider {
  handshake: Unary<rpc.ProviderHandshakeRequest, rpc.ProviderHandshakeResponse>;
  getSchema: Unary<rpc.GetSchemaRequest, rpc.GetSchemaResponse>;
  checkConfig: Unary<rpc.CheckRequest, rpc.CheckResponse>;
  diffConfig: Unary<rpc.DiffRequest, rpc.DiffResponse>;
  configure: Unary<rpc.ConfigureRequest, rpc.ConfigureResponse>;
  invoke: Unary<rpc.InvokeRequest, rpc.InvokeResponse>;
  check: Unary<rpc.CheckRequest, rpc.CheckResponse>;
  diff: Unary<rpc.DiffRequest, rpc.DiffResponse>;
  create: Unary<rpc.CreateRequest, rpc.CreateResponse>;
  read: Unary<rpc.ReadRequest, rpc.ReadResponse>;
  update: Unary<rpc.UpdateRequest, rpc.UpdateResponse>;
  delete: Unary<rpc.DeleteRequest, undefined>;
  list: (request: rpc.ListRequest) => AsyncIterable<rpc.ListResponse>;
  construct: Unary<rpc.ConstructRequest, rpc.ConstructResponse>;
  call: Unary<rpc.CallRequest, rpc.CallResponse>;
  cancel: Unary<unknown, undefined>;
  attach: Unary<{ getAddress(): string }, undefined>;
  getPluginInfo: Unary<unknown, InstanceType<typeof pluginProto.PluginInfo>>;
}

/** Creates the provider of one process; the engine starts one for every configuration. */
export function createProvider({ engine, schema, wording, run }: Host): Provider {
  let cancelled = new AbortController();
  let configured: Config | undefined;
  /** The values that it was read from. */
  let configuration: Values = {};
  /** Does work with the configuration, which may be one that the last `up` stored. */
  let configuredAs: <T>(subject: string, work: () => Promise<T>) => Promise<T> = (_, work) => work();
  /** Whether the engine has named another endpoint or organization than that of the last run. */
  let hasMoved = false;
  /** Whether the engine can read a resource before each diff. */
  let canRefreshFirst = false;
  /** Whether this is the provider that the engine makes from the stack's configuration. */
  let isDefault = false;
  /** Whether the program of this run has declared a resource. */
  let isDeclaring = false;
  /** Whether the request belongs to a state; `pulumi do` has none. */
  let hasState = true;

  const config = (): Config => {
    if (!configured) throw new MachinesError("configuration", "the provider has not been configured");
    return configured;
  };
  /**
   * Values in core's form, with the engine's facts about the resource in their context. `pulumi do` gives everything of a
   * type the same URN, so then the context has no owner.
   */
  const owned = (values: Values, urn: string, name: string): Values => ({
    ...values,
    [CONTEXT]: { ...contextOf(values), ...(hasState ? { owner: ownerOf(urn) } : {}), name },
  });
  /** A state in core's form: an alias may have renamed the resource since it was written. */
  const ownedState = (state: Values, urn: string, name: string): Values => {
    const formerOwners = hasState ? formerOwnersIn(state, ownerOf(urn)) : [];
    if (formerOwners.length === 0) return owned(state, urn, name);
    return owned({ ...state, [CONTEXT]: { ...contextOf(state), formerOwners } }, urn, name);
  };
  /**
   * Asks once whether the service can be used, because a preview without changes asks nothing else. Only a provider whose
   * resources a program declares asks: another one may have a token that was replaced. No answer is a warning, because what
   * needs the service fails by itself.
   */
  const requireConnection = async (): Promise<void> => {
    if (!isDeclaring || configured === undefined) return;
    const problem = await checkConnection({ api: clientFor(configured, () => undefined), run });
    if (problem === undefined || !run.isFirstReport(problem.message)) return;
    if (!problem.isWarning) throw new MachinesError(problem.code ?? "api", problem.message);
    engine.warn("", problem.message);
  };
  /**
   * Whether to ask the engine to read a resource before each diff. The engine reads with the configuration of the last `up`.
   * Only the default provider knows a newer one: with an explicit provider, an `up` with a new token would fail before it
   * stores the token.
   */
  const isRefreshedFirst = ({ refreshBeforeUpdate }: Resource): boolean =>
    refreshBeforeUpdate && canRefreshFirst && isDefault;
  const failingWith = partlyFailing(wording, isRefreshedFirst);
  /** Notes the secrets of a resource, which another one may use. */
  const noteSecrets = (resource: Resource, ...all: readonly Decoded[]): void => {
    for (const { values, marks } of all) run.noteSecrets(withheld(fieldsIn(resource), values, marks));
  };
  const caller = (request: Telling & { getUrn(): string }, timeoutSeconds: number): Caller => {
    const urn = request.getUrn();
    const warn = (message: string) => engine.warn(urn, wording(request, message));
    return {
      api: clientFor(config(), warn),
      run,
      progress: (message) => engine.status(urn, wording(request, message)),
      warn,
      signal: cancelled.signal,
      timeoutSeconds: timeoutSeconds > 0 ? timeoutSeconds : undefined,
    };
  };
  /** Findings of the service about new or changed inputs: warnings, and the error of a preview. */
  const refuseFindings = async (
    resource: Resource,
    request: Telling & { getUrn(): string },
    olds: Values,
    inputs: Values,
  ): Promise<void> => {
    const { api, warn, signal } = caller(request, 0);
    const asking = { api: api.within({ ...api.deadline, signal }), run, warn };
    const found = await runPreviewChecks(resource, olds, inputs, run.nameInState(contextOf(inputs).owner), asking);
    for (const { path, message } of found.filter(({ isWarning }) => isWarning))
      warn(path.length > 0 ? `${resource.name} ${pathText(path)}: ${message}` : message);
    for (const { message } of found.filter(({ isNote }) => isNote))
      engine.note(request.getUrn(), wording(request, message));
    const problems = found.filter(({ isWarning, isNote }) => !isWarning && !isNote);
    if (problems.length > 0)
      throw new MachinesError(
        problems.find(({ code }) => code)?.code ?? "invalid-input",
        problems.map(({ path, message }) => located(path, message)).join("; "),
      );
  };

  /** Why refused changes are to values that cannot be used at all. A preview asks this only about accepted changes. */
  const unusableValues = async (
    resource: Resource,
    request: Telling & { getUrn(): string },
    olds: Values,
    inputs: Values,
    refused: readonly string[],
  ): Promise<readonly Problem[]> => {
    if (refused.length === 0 || configured === undefined) return [];
    const { api, warn, signal } = caller(request, 0);
    const asking = { api: api.within({ ...api.deadline, signal }), run, warn };
    return problemsWithValues(refused, resource, olds, inputs, asking);
  };

  return {
    handshake(request) {
      engine.attach(request.getEngineAddress());
      canRefreshFirst = request.getSupportsRefreshBeforeUpdate();
      const response = new proto.ProviderHandshakeResponse();
      response.setAcceptSecrets(true);
      response.setAcceptOutputs(true);
      response.setSupportsAutonamingConfiguration(true);
      return response;
    },

    getSchema(request) {
      if (request.getVersion() !== 0)
        throw new MachinesError(
          "invalid-input",
          `there is no version ${request.getVersion()} of the package schema; ask for 0`,
        );
      const response = new proto.GetSchemaResponse();
      response.setSchema(schema());
      return response;
    },

    checkConfig(request) {
      const { values, marks } = decode(request.getNews());
      const response = new proto.CheckResponse();
      response.setInputs(encode(values, () => [], withSecrets(marks, ["token"])));
      response.setFailuresList(configurationProblems(values).map(failure));
      return response;
    },

    diffConfig(request) {
      const olds = decode(request.getOldInputs() ?? request.getOlds()).values;
      const changes = configurationChanges(olds, decode(request.getNews()).values);
      hasMoved ||= changes.some(({ moves }) => moves);
      return diffResponse(
        changes.map(({ key, kind }) => ({ path: [key], kind, replaces: false })),
        false,
      );
    },

    configure(request) {
      const given = decode(request.getArgs()).values;
      const current = isDefaultProvider(request.getUrn()) ? currentConfiguration() : undefined;
      isDefault = current !== undefined;
      configuration = current ?? given;
      configured = configFrom(configuration);
      configuredAs =
        current === undefined ? (subject, work) => withStoredConfiguration(run, subject, work) : (_, work) => work();
      hasMoved ||= configurationChanges(given, current ?? given).some(({ moves }) => moves);
      warnOfExposure(configured, (message) => engine.warn("", message));
      // Every explicit provider has a name.
      hasState = request.getUrn()?.endsWith("::") !== true;
      // A provider that was started manually serves several runs in sequence.
      cancelled = new AbortController();
      run.begin();
      isDeclaring = false;
      const response = new proto.ConfigureResponse();
      // For engines without a handshake.
      response.setAcceptsecrets(true);
      response.setAcceptoutputs(true);
      response.setSupportspreview(true);
      response.setSupportsAutonamingConfiguration(true);
      return response;
    },

    async invoke(request) {
      const called = functionOf(request.getTok());
      const { values, marks } = decode(request.getArgs());
      const reportStatus = (message: string) => engine.status("", wording(request, message));
      const api = clientFor(config(), (message) => engine.warn("", wording(request, message)));
      const answer = await callFunction(called, values, {
        api,
        progress: reportStatus,
        signal: cancelled.signal,
        // The engine rejects a function result with unknown values.
        preview: request.getPreview() ? "look" : undefined,
      });
      const response = new proto.InvokeResponse();
      const names = holdsSecret(marks) ? Object.keys(answer) : [];
      const fieldOf = (name: string) => [called.outputFields[name]].filter((field) => field !== undefined);
      response.setReturn(encode(answer, fieldOf, withSecrets(undefined, names)));
      return response;
    },

    async check(request) {
      const { resource, urn, name } = about(request);
      const [olds, news] = [decode(request.getOlds()), decode(request.getNews())];
      const before = owned(olds.values, urn, name);
      const wanted = owned(news.values, urn, name);
      isDeclaring = true;
      run.declare(resource, before, wanted);
      noteSecrets(resource, olds, news);
      const state = stateIn(request);
      run.noteState(state ?? {});
      const { inputs, problems, refusedChanges } = check(resource, before, wanted, {
        randomHex: seeded(request.getRandomseed_asU8(), urn),
        run,
        state,
        proposal: proposalOf(request),
        isSecret: (path) => isSecretAt(news.marks, path),
        warn: (message) => engine.warn(urn, wording(request, message)),
      });
      const response = new proto.CheckResponse();
      response.setInputs(encodedInputs(resource, inputs, marksOver(olds, news)));
      const unusable = await unusableValues(resource, request, before, inputs, [...refusedChanges.keys()]);
      const others = problems.filter(
        (problem) => !unusable.some(({ path }) => refusedChanges.get(String(path[0])) === problem),
      );
      const all = [...unusable.map(({ path, message }) => located(path, message)), ...others];
      response.setFailuresList(all.map((problem) => failure(wording(request, problem))));
      return response;
    },

    async diff(request) {
      const { resource, urn, name } = about(request);
      await requireConnection();
      if (hasMoved) await confirmStillThere(resource, request.getId(), caller(request, 0));
      const [olds, news] = [decode(request.getOlds()), decode(request.getNews())];
      const state = ownedState(olds.values, urn, name);
      const wanted = owned(news.values, urn, name);
      const found = guardedDiff(run, resource, request.getId(), state, wanted);
      await refuseToReplace(run, resource, request.getId(), wanted, found, () => Promise.resolve(caller(request, 0)));
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
      if (mustRewriteState(run, resource, state, wanted)) response.setChanges(proto.DiffResponse.DiffChanges.DIFF_SOME);
      return response;
    },

    async create(request) {
      const { resource, urn, name } = about(request);
      const { values, marks } = decode(request.getProperties());
      noteSecrets(resource, { values, marks });
      const inputs = owned(values, urn, name);
      const response = new proto.CreateResponse();
      if (request.getPreview()) {
        run.refuseReplacement(resource, inputs);
        await refuseFindings(resource, request, run.inputsInState(contextOf(inputs).owner), inputs);
        const { id, state } = previewCreate(resource, inputs);
        // A call that depends on the id of an object that does not exist yet must not run. This mainly concerns functions.
        const known = run.isInState(contextOf(inputs).owner) ? id : undefined;
        if (known !== undefined) run.noteCreated(known, contextOf(inputs).owner);
        response.setId(known ?? "");
        response.setProperties(encodedInputs(resource, state, marks));
        return response;
      }
      const created = await failingWith(resource, marks, request, () =>
        create(resource, inputs, caller(request, request.getTimeout())),
      );
      noteSecrets(resource, { values: created.state, marks });
      response.setId(created.id);
      response.setProperties(encoded(resource, created.state, marks));
      response.setRefreshBeforeUpdate(isRefreshedFirst(resource));
      return response;
    },

    async read(request) {
      const { resource, urn, name } = about(request);
      const [properties, asked] = [decode(request.getProperties()), decode(request.getInputs())];
      noteSecrets(resource, properties, asked);
      // A refresh passes the state; an import and a get pass only the id.
      const known = Object.keys(properties.values).some((key) => properties.values[key] !== undefined);
      const state = known ? ownedState(properties.values, urn, name) : undefined;
      const id = request.getId();
      const found = await configuredAs(`${resource.name} ${id}`, () =>
        read(resource, id, state, caller(request, request.getTimeout())),
      );
      const response = new proto.ReadResponse();
      if (!found) {
        if (state) return response;
        throw new MachinesError(
          "invalid-input",
          `there is no ${resource.name} ${JSON.stringify(id)}; its id has the form ${resource.id.form}`,
        );
      }
      const marks = mergedMarks(properties.marks, asked.marks);
      noteSecrets(resource, { values: found.state, marks });
      // A refresh adds no owner to a state without one: it would show as a change of a resource that a program only
      // reads.
      const encodedState = contextOf(properties.values).owner === undefined ? encodedInputs : encoded;
      response.setId(found.id);
      response.setProperties(encodedState(resource, found.state, marks));
      response.setInputs(encodedInputs(resource, found.inputs, marks));
      // A resource that a program only reads has no state id, and is read in every run anyway.
      response.setRefreshBeforeUpdate(isRefreshedFirst(resource) && contextOf(properties.values).stack !== undefined);
      return response;
    },

    async update(request) {
      const { resource, urn, name } = about(request);
      const [olds, news] = [decode(request.getOlds()), decode(request.getNews())];
      noteSecrets(resource, olds, news);
      const [old, inputs] = [ownedState(olds.values, urn, name), owned(news.values, urn, name)];
      const marks = marksOver(olds, news);
      const response = new proto.UpdateResponse();
      if (request.getPreview()) {
        await refuseFindings(resource, request, old, inputs);
        warnOf(resource, old, inputs, caller(request, 0).warn);
        response.setProperties(encodedInputs(resource, previewUpdate(resource, old, inputs), marks));
        return response;
      }
      // A partial change leaves earlier values in place, and their secrets stay secret.
      const partly = mergedMarks(marks, olds.marks);
      const state = await failingWith(resource, partly, request, () =>
        update(resource, request.getId(), old, inputs, caller(request, request.getTimeout())),
      );
      noteSecrets(resource, { values: state, marks });
      response.setProperties(encoded(resource, state, marks));
      response.setRefreshBeforeUpdate(isRefreshedFirst(resource));
      return response;
    },

    async delete(request) {
      const { resource, urn, name } = about(request);
      const state = ownedState(decode(request.getProperties()).values, urn, name);
      await configuredAs(`${resource.name} ${request.getId()}`, () =>
        remove(resource, request.getId(), state, caller(request, request.getTimeout())),
      );
      return undefined;
    },

    async *list(request) {
      const resource = resourceOf(request.getToken());
      const { values: query } = decode(request.getQuery());
      if (hasUnknown(query)) {
        yield new proto.ListResponse().setComputed(new proto.ListResponse.Computed());
        return;
      }
      const sizes = [request.getLimit(), request.getPageSize()].filter((size) => size > 0);
      const api = clientFor(config(), (message) => engine.warn("", message));
      const page = await listPage(
        resource,
        {
          query,
          size: sizes.length === 0 ? undefined : Math.min(...sizes),
          continuation: request.getContinuationToken(),
        },
        api.within({ ...api.deadline, signal: cancelled.signal }),
      );
      for (const { id, name } of page.items) {
        const result = new proto.ListResponse.Result().setId(id).setName(name);
        yield new proto.ListResponse().setResult(result);
      }
      if (page.continuation === "") return;
      const continuation = new proto.ListResponse.Continuation().setContinuationToken(page.continuation);
      yield new proto.ListResponse().setContinuation(continuation);
    },

    construct(request) {
      return constructComponent(request, (urn) => {
        const warn = (message: string) => engine.warn(urn, wording(request, message));
        return {
          warn,
          apiOf(elsewhere) {
            const used = elsewhere ? configFrom({ ...configuration, ...withoutUndefined(elsewhere) }) : config();
            const api = clientFor(used, warn);
            return api.within({ ...api.deadline, signal: cancelled.signal });
          },
        };
      });
    },

    call(request) {
      return callMethod(request);
    },

    cancel() {
      cancelled.abort(
        new MachinesError(
          "cancelled",
          "cancelled: nothing more is sent. Objects that were created are kept in the state, and the next up continues from there.",
        ),
      );
      return undefined;
    },

    attach(request) {
      engine.attach(request.getAddress());
      return undefined;
    },

    getPluginInfo() {
      const info = new pluginProto.PluginInfo();
      info.setVersion(versionIn(schema()));
      return info;
    },
  };
}

/** The version in a package schema. */
export const versionIn = (schema: string): string => (JSON.parse(schema) as { version: string }).version;

/** The resource of a request. */
function about(request: { getUrn(): string }): { resource: Resource; urn: string; name: string } {
  const urn = request.getUrn();
  const [, , types = "", ...rest] = urn.split("::");
  return { resource: resourceOf(types.slice(types.lastIndexOf("$") + 1)), urn, name: rest.join("::") };
}

/** The resource type of a token. */
function resourceOf(token: string): Resource {
  const type = /^machines:index:(\w+)$/.exec(token)?.[1] ?? "";
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  if (!resource) {
    const meant = didYouMean(type, Object.keys(resources));
    throw new MachinesError(
      "invalid-input",
      `there is no resource type ${JSON.stringify(token)} in this version${meant === undefined ? "" : `; did you mean machines:index:${meant}?`}`,
    );
  }
  return resource;
}

/** The function of a request. */
function functionOf(token: string): MachinesFunction {
  const name = /^machines:index:(\w+)$/.exec(token)?.[1] ?? "";
  const found = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (found) return found;
  const meant = didYouMean(name, Object.keys(functions));
  throw new MachinesError(
    "invalid-input",
    `there is no function ${JSON.stringify(token)} in this version${meant === undefined ? "" : `; did you mean machines:index:${meant}?`}`,
  );
}

/** Inputs in the engine's state, without the additions to their context. A preview's result has no owner either. */
function encodedInputs(resource: Resource, inputs: Values, marks: Marks | undefined): ReturnType<typeof encode> {
  const { owner: _, ...context } = contextOf(inputs);
  return encoded(resource, { ...inputs, [CONTEXT]: context }, marks);
}

/**
 * A state as the engine keeps it. For types with guarded data it names the owner, which reveals an alias later (R11).
 */
function encoded(resource: Resource, values: Values, marks: Marks | undefined): ReturnType<typeof encode> {
  const { [CONTEXT]: _, ...rest } = values;
  const { owner, name: _name, ...others } = contextOf(values);
  const context = resource.losesData === undefined || owner === undefined ? others : { ...others, owner };
  const repeating = Object.entries(resource.derivedFrom).filter(([, paths]) =>
    [paths ?? []].flat().some((path) => holdsSecretAt(marks, path.split("."))),
  );
  return encode(
    Object.keys(context).length > 0 ? { ...rest, [CONTEXT]: context } : rest,
    (name) => {
      const fields = [resource.inputFields, resource.outputFields].map((known) =>
        Object.hasOwn(known, name) ? known[name] : undefined,
      );
      return fields.filter((field) => field !== undefined);
    },
    withSecrets(
      marks,
      repeating.map(([output]) => output),
    ),
  );
}

/** The properties of a resource. */
const fieldsIn = ({ inputFields, outputFields }: Resource) => ({ ...outputFields, ...inputFields });

/** The marks of the program's values, and of the values that it leaves unchanged. */
function marksOver(olds: Decoded, news: Decoded): Marks | undefined {
  if (!olds.marks) return news.marks;
  const omitted = [...olds.marks.within].filter(([name]) => news.values[String(name)] === undefined);
  return mergedMarks(news.marks, { ...olds.marks, within: new Map(omitted) });
}

/** The engine prints the value of a named property, even of a secret: the path is part of the reason. */
function failure(reason: string): rpc.CheckFailure {
  const found = new proto.CheckFailure();
  found.setReason(reason);
  return found;
}

/** The state of an object in a check. Older engines send none, and no engine does for a new or replaced resource. */
function stateIn(request: rpc.CheckRequest): Values | undefined {
  const { values } = decode(request.getOldOutputs());
  return Object.keys(values).length > 0 ? values : undefined;
}

function proposalOf(request: rpc.CheckRequest): Surroundings["proposal"] {
  const autonaming = request.getAutonaming();
  if (!autonaming) return undefined;
  const { Mode } = proto.CheckRequest.AutonamingOptions;
  const modes = { [Mode.PROPOSE]: "propose", [Mode.ENFORCE]: "enforce", [Mode.DISABLE]: "disable" } as const;
  return { name: autonaming.getProposedName(), mode: modes[autonaming.getMode()] };
}

/** Hexadecimal characters that follow from the engine's seed, so that a plan is executed with the names it showed. */
function seeded(seed: Uint8Array, urn: string): (characters: number) => string {
  const chance = seed.length > 0 ? seed : randomBytes(32);
  return (characters) => createHash("sha256").update(chance).update(urn).digest("hex").slice(0, characters);
}

function diffResponse(
  changes: readonly Pick<Change, "path" | "kind" | "replaces">[],
  deleteBeforeReplace: boolean,
): rpc.DiffResponse {
  const { Kind } = proto.PropertyDiff;
  const kinds = {
    add: [Kind.ADD, Kind.ADD_REPLACE],
    update: [Kind.UPDATE, Kind.UPDATE_REPLACE],
    delete: [Kind.DELETE, Kind.DELETE_REPLACE],
  } as const;
  const response = new proto.DiffResponse();
  const top = (of: typeof changes): string[] => [...new Set(of.map(({ path }) => String(path[0])))];
  const replaces = top(changes.filter((change) => change.replaces));
  const { DIFF_SOME, DIFF_NONE } = proto.DiffResponse.DiffChanges;
  response.setChanges(changes.length > 0 ? DIFF_SOME : DIFF_NONE);
  response.setDiffsList(top(changes));
  response.setReplacesList(replaces);
  response.setDeletebeforereplace(deleteBeforeReplace && changes.length > 0);
  response.setHasdetaileddiff(true);
  for (const { path, kind, replaces: asks } of changes) {
    const detail = new proto.PropertyDiff();
    detail.setKind(kinds[kind][asks ? 1 : 0]);
    detail.setInputdiff(true);
    response.getDetaileddiffMap().set(pathText(path), detail);
  }
  return response;
}

/** Does work whose failure may leave an object with a state. */
const partlyFailing =
  (wording: Wording, isRefreshedFirst: (resource: Resource) => boolean) =>
  async <T>(
    resource: Resource,
    marks: Marks | undefined,
    request: Telling & Subject,
    work: () => Promise<T>,
  ): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof InitializationFailed)) throw error;
      const state = encoded(resource, error.properties, marks);
      const worded = (text: string) => wording(request, withoutSecrets([state], fieldsIn(resource), text));
      throw initializationFailed(error, state, isRefreshedFirst(resource), worded);
    }
  };
