// The connection back to the engine, and through it to the user: output that a plugin prints itself is not shown.
import grpc from "@grpc/grpc-js";
import engineGrpc from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import type { EngineClient } from "@pulumi/pulumi/proto/engine_grpc_pb.js";
import engineProto from "@pulumi/pulumi/proto/engine_pb.js";
import { printable } from "../../api/printable.ts";

/** Prints a message about a resource, or about the whole run without a URN. */
export interface Log {
  /** Shown beside the resource during its operation, and removed afterwards. */
  status(urn: string, message: string): void;
  /** Shown beside the resource, and kept. */
  note(urn: string, message: string): void;
  /** Shown in the summary as well. */
  warn(urn: string, message: string): void;
}

type Severity = (typeof engineProto.LogSeverity)[keyof typeof engineProto.LogSeverity];

/** The engine this process belongs to, once its address is known. */
export interface Engine extends Log {
  /** Sets the engine's address. */
  attach(address: string): void;
}

/** An engine that is attached later; until then messages go to standard error. */
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
    // An engine that has exited cannot receive messages.
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
    note: (urn, message) => send(engineProto.LogSeverity.INFO, urn, message, false),
    warn(urn, message) {
      // The engine may repeat a call in a run; the user is warned once.
      const warning = JSON.stringify([urn, message]);
      if (!warned.has(warning)) send(engineProto.LogSeverity.WARNING, urn, message, false);
      warned.add(warning);
    },
  };
}
