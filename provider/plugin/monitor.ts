// The engine's resource monitor: registers components, and reads resources of the run. Loaded by the first component only,
// because its messages are as large as those of the rest of the protocol.
import grpc from "@grpc/grpc-js";
import struct from "google-protobuf/google/protobuf/struct_pb.js";
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import type { ConstructRequest } from "@pulumi/pulumi/proto/provider_pb.js";
import monitorGrpc from "@pulumi/pulumi/proto/resource_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/resource_pb.js";

/** A resource as the engine has it in this run. */
export interface Held {
  /** Empty for components, and while a preview would create the resource. */
  readonly id: string;
  readonly outputs: Struct | undefined;
}

/** The parts of the monitor that components need. */
export interface Monitor {
  /** Registers a component with the options that the program gave it. Returns its URN. */
  register(request: ConstructRequest): Promise<string>;
  registerOutputs(urn: string, outputs: Struct): Promise<void>;
  /** Reads a resource that this run has registered or read. */
  resource(urn: string): Promise<Held>;
}

/** Works with the monitor of a run, each of which has its own address. */
export async function withMonitor<T>(address: string, work: (monitor: Monitor) => Promise<T>): Promise<T> {
  const client = new monitorGrpc.ResourceMonitorClient(address, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  const answer = <R>(send: (answered: (error: grpc.ServiceError | null, response: R) => void) => unknown): Promise<R> =>
    new Promise((resolve, reject) => {
      send((error, response) => (error ? reject(new Error(error.details)) : resolve(response)));
    });
  try {
    return await work({
      register: async (request) =>
        (
          await answer<InstanceType<typeof proto.RegisterResourceResponse>>((answered) =>
            client.registerResource(registration(request), answered),
          )
        ).getUrn(),
      async registerOutputs(urn, outputs) {
        const request = new proto.RegisterResourceOutputsRequest();
        request.setUrn(urn);
        request.setOutputs(outputs);
        await answer((answered) => client.registerResourceOutputs(request, answered));
      },
      async resource(urn) {
        const request = new proto.ResourceInvokeRequest();
        request.setTok("pulumi:pulumi:getResource");
        request.setArgs(struct.Struct.fromJavaScript({ urn }));
        const response = await answer<InstanceType<typeof proto.ResourceInvokeResponse>>((answered) =>
          client.invoke(request, answered),
        );
        const found = response.getReturn()?.getFieldsMap();
        return {
          id: found?.get("id")?.getStringValue() ?? "",
          outputs: found?.get("state")?.getStructValue(),
        };
      },
    });
  } finally {
    client.close();
  }
}

/** The registration of a component. Its inputs are left out: they may have the token of another stack. */
function registration(request: ConstructRequest): InstanceType<typeof proto.RegisterResourceRequest> {
  const made = new proto.RegisterResourceRequest();
  made.setType(request.getType());
  made.setName(request.getName());
  made.setParent(request.getParent());
  made.setCustom(false);
  made.setObject(new struct.Struct());
  made.setAcceptsecrets(true);
  made.setAcceptresources(true);
  made.setSupportspartialvalues(true);
  made.setDependenciesList(request.getDependenciesList());
  made.setAliasesList(request.getAliasesList());
  made.setAliasspecs(true);
  made.setIgnorechangesList(request.getIgnorechangesList());
  made.setReplaceonchangesList(request.getReplaceonchangesList());
  made.setAdditionalsecretoutputsList(request.getAdditionalsecretoutputsList());
  made.setDeletedwith(request.getDeletedwith());
  made.setReplaceWithList(request.getReplaceWithList());
  made.setReplacementTrigger(request.getReplacementTrigger());
  made.setParentstacktracehandle(request.getStackTraceHandle());
  const [isProtected, isRetained] = [request.getProtect(), request.getRetainondelete()];
  if (request.hasProtect() && isProtected !== undefined) made.setProtect(isProtected);
  if (request.hasRetainondelete() && isRetained !== undefined) made.setRetainondelete(isRetained);
  const providers = made.getProvidersMap();
  request.getProvidersMap().forEach((provider, name) => providers.set(name, provider));
  const given = request.getResourceHooks();
  if (given) {
    const hooks = new proto.RegisterResourceRequest.ResourceHooksBinding();
    hooks.setBeforeCreateList(given.getBeforeCreateList());
    hooks.setAfterCreateList(given.getAfterCreateList());
    hooks.setBeforeUpdateList(given.getBeforeUpdateList());
    hooks.setAfterUpdateList(given.getAfterUpdateList());
    hooks.setBeforeDeleteList(given.getBeforeDeleteList());
    hooks.setAfterDeleteList(given.getAfterDeleteList());
    made.setHooks(hooks);
  }
  return made;
}
