// The methods of the protocol, and what the process gives the provider that has them.
import type pluginProto from "@pulumi/pulumi/proto/plugin_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import type { Runs } from "../core/run/run.ts";
import type { Engine } from "./engine.ts";
import type { Telling } from "./redaction.ts";
import type { Subject } from "./spelling.ts";

/** The process's services for the provider. */
export interface Host {
  readonly engine: Engine;
  /** The package schema, as JSON text. */
  readonly schema: () => string;
  /** A message about a request, as its user may see it. */
  readonly wording: Wording;
  /** The runs of the engine that the process serves. */
  readonly runs: Runs;
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
