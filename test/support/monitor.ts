// A resource monitor as the engine has it: it registers components, and answers with the resources of a run.
import grpc from "@grpc/grpc-js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import monitorGrpc from "@pulumi/pulumi/proto/resource_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/resource_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/resource_pb.js";
import { fromStruct, toStruct, type Properties } from "./properties.ts";

/** A running monitor. */
export interface FakeMonitor {
  readonly address: string;
  /** The components that were registered. */
  readonly registered: readonly rpc.RegisterResourceRequest[];
  /** The outputs of the components, by URN. */
  readonly outputs: ReadonlyMap<string, Properties>;
  /** The resources of the run by URN: ids and states. A component gets its outputs by itself. */
  readonly resources: Map<string, { readonly id: string; readonly state: Properties }>;
  close(): void;
}

/** Starts a monitor. `during` is awaited in each registration. */
export async function startMonitor(during: (name: string) => Promise<void> = async () => {}): Promise<FakeMonitor> {
  const registered: rpc.RegisterResourceRequest[] = [];
  const outputs = new Map<string, Properties>();
  const resources: FakeMonitor["resources"] = new Map();
  type Handler<Request> = (call: { request: Request }, answer: grpc.sendUnaryData<unknown>) => void;
  const register = async (request: rpc.RegisterResourceRequest): Promise<rpc.RegisterResourceResponse> => {
    registered.push(request);
    await during(request.getName());
    const response = new proto.RegisterResourceResponse();
    response.setUrn(`urn:pulumi:dev::shop::${request.getType()}::${request.getName()}`);
    return response;
  };
  const registerResource: Handler<rpc.RegisterResourceRequest> = ({ request }, answer) => {
    void register(request).then((response) => answer(null, response));
  };
  const registerResourceOutputs: Handler<rpc.RegisterResourceOutputsRequest> = ({ request }, answer) => {
    const state = request.getOutputs();
    const found = state ? fromStruct(state, { unknowns: true }) : {};
    outputs.set(request.getUrn(), found);
    resources.set(request.getUrn(), { id: "", state: found });
    answer(null, new empty.Empty());
  };
  const invoke: Handler<rpc.ResourceInvokeRequest> = ({ request }, answer) => {
    const urn = request.getArgs()?.getFieldsMap().get("urn")?.getStringValue() ?? "";
    const held = resources.get(urn);
    if (request.getTok() !== "pulumi:pulumi:getResource" || held === undefined)
      return answer({ code: grpc.status.UNKNOWN, details: `unknown resource ${urn}` });
    const response = new proto.ResourceInvokeResponse();
    response.setReturn(toStruct({ urn, ...held }));
    answer(null, response);
  };
  const server = new grpc.Server();
  const unary = { registerResource, registerResourceOutputs, invoke } as unknown as grpc.UntypedServiceImplementation;
  server.addService(monitorGrpc.ResourceMonitorService, unary);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { address: `127.0.0.1:${port}`, registered, outputs, resources, close: () => server.forceShutdown() };
}
