// Binding 2: the engine's gRPC protocol. It unpacks requests, passes them to core, and packs core's results. The families'
// folders declare everything about resources.
import pluginProto from "@pulumi/pulumi/proto/plugin_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { MachinesError } from "../client/errors.ts";
import { callFunction } from "../core/function.ts";
import { hasUnknown } from "../core/values.ts";
import { diffResponse, failure } from "./answers.ts";
import { callMethod, constructComponent } from "./component.ts";
import { configurationProblems, ID_IN_NEW } from "./configuration.ts";
import { Connection } from "./connection.ts";
import type { Host, Provider } from "./protocol.ts";
import { listPage } from "./list.ts";
import { decode, dependenciesIn, encode, holdsSecret, marksOfAll, withSecrets } from "./marshal.ts";
import { functionOf, resourceOf } from "./requests.ts";
import { verbsOf } from "./verbs.ts";

/** Creates the provider of one process; the engine starts one for every configuration. */
export function createProvider(host: Host): Provider {
  const { engine, schema, wording } = host;
  const connection = new Connection(host);

  return {
    ...verbsOf(host, connection),

    handshake(request) {
      engine.attach(request.getEngineAddress());
      connection.canRefreshFirst = request.getSupportsRefreshBeforeUpdate();
      connection.hasViews = request.getSupportsViews();
      const response = new proto.ProviderHandshakeResponse();
      response.setAcceptSecrets(true);
      response.setAcceptOutputs(true);
      response.setAcceptsOutputsInInvoke(request.getAcceptsOutputsInInvoke());
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
      response.setFailuresList(configurationProblems(values, request.getUrn()).map(failure));
      return response;
    },

    diffConfig(request) {
      const olds = decode(request.getOldInputs() ?? request.getOlds()).values;
      const changes = connection.compare(olds, decode(request.getNews()).values);
      return diffResponse(
        changes.map(({ key, kind }) => ({ path: [key], kind, replaces: false })),
        false,
      );
    },

    async configure(request) {
      const { values } = decode(request.getArgs());
      if (request.getId() === ID_IN_NEW) await connection.tryOut(values);
      else connection.configure(request.getUrn(), values);
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
      const api = connection.api((message) => engine.warn("", wording(request, message)));
      const answer = await callFunction(called, values, {
        api,
        progress: reportStatus,
        signal: connection.signal,
        // The engine rejects a function result with unknown values.
        preview: request.getPreview() ? "look" : undefined,
      });
      const response = new proto.InvokeResponse();
      // An answer depends on all arguments. Only engines that take outputs in answers send the arguments as outputs.
      const answered = marksOfAll(Object.keys(answer), holdsSecret(marks), [...new Set(dependenciesIn(marks))]);
      const fieldOf = (name: string) => [called.outputFields[name]].filter((field) => field !== undefined);
      response.setReturn(encode(answer, fieldOf, answered));
      return response;
    },

    async *list(request) {
      const resource = resourceOf(request.getToken());
      const { values: query } = decode(request.getQuery());
      if (hasUnknown(query)) {
        yield new proto.ListResponse().setComputed(new proto.ListResponse.Computed());
        return;
      }
      const sizes = [request.getLimit(), request.getPageSize()].filter((size) => size > 0);
      const page = await listPage(
        resource,
        {
          query,
          size: sizes.length === 0 ? undefined : Math.min(...sizes),
          continuation: request.getContinuationToken(),
        },
        connection.api((message) => engine.warn("", message)),
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
        return { warn, apiOf: (elsewhere) => connection.api(warn, elsewhere && { ...elsewhere }) };
      });
    },

    call(request) {
      return callMethod(request);
    },

    cancel() {
      connection.cancel();
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
