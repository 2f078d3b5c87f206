// The connection back to the engine, and through it to the user: output that a plugin prints itself is not shown.
import grpc from "@grpc/grpc-js";
import engineGrpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import type { EngineClient } from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import engineProto from "@pulumi/pulumi/proto/engine_pb.js";
import { printable } from "../client/printable.ts";

/** Says something about a resource, or about the whole run where no URN is given. */
export interface Log {
  /** Shown beside the resource while it is worked on, and gone afterwards. */
  status(urn: string, message: string): void;
  /** Shown in the summary as well. */
  warn(urn: string, message: string): void;
}

type Severity = (typeof engineProto.LogSeverity)[keyof typeof engineProto.LogSeverity];

/** The engine this process belongs to, once its address is known. */
export interface Engine extends Log {
  /** Says where the engine is now. */
  attach(address: string): void;
}

/** An engine that is yet to be attached; until then messages go to standard error. */
export function engineLog(): Engine {
  let client: EngineClient | undefined;
  let attached: string | undefined;
  const warned = new Set<string>();
  const send = (severity: Severity, urn: string, message: string, ephemeral: boolean): void => {
    if (!client) return void process.stderr.write(`${printable(message)}\n`);
    const request = new engineProto.LogRequest();
    request.setSeverity(severity);
    request.setUrn(urn);
    request.setMessage(printable(message));
    request.setEphemeral(ephemeral);
    // An engine that has ended cannot receive messages.
    client.log(request, () => undefined);
  };
  return {
    attach(address) {
      if (address === attached) return;
      client?.close();
      client = new engineGrpc.EngineClient(address, grpc.credentials.createInsecure());
      attached = address;
    },
    status: (urn, message) => send(engineProto.LogSeverity.INFO, urn, message, true),
    warn(urn, message) {
      // The engine may ask the same more than once in a run; the user is warned once.
      const warning = JSON.stringify([urn, message]);
      if (!warned.has(warning)) send(engineProto.LogSeverity.WARNING, urn, message, false);
      warned.add(warning);
    },
  };
}
