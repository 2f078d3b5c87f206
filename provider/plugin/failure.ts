// Errors in the engine's form: a message and, for an object whose creation or change is unfinished, its id and state.
import grpc from "@grpc/grpc-js";
import any from "google-protobuf/google/protobuf/any_pb.js";
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import status from "@pulumi/pulumi/proto/status_pb.js";
import type { InitializationFailed } from "../core/verbs/index.ts";
import { messageForUser } from "../client/errors.ts";
import { printable } from "../../api/printable.ts";

/** An error in gRPC's form. */
export interface Failure extends Partial<grpc.ServiceError> {
  readonly code: grpc.status;
  readonly details: string;
}

/** The engine's "initialization failed": it keeps the object under its id, and the next up updates it. */
export class PartialFailure extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.details);
    this.failure = failure;
  }
}

/** Packs an object and its errors into the details of a gRPC error. */
export function initializationFailed(
  failed: InitializationFailed,
  state: Struct,
  isRefreshedFirst: boolean,
  worded: (text: string) => string,
): PartialFailure {
  const { id } = failed;
  const [message = "", ...reasons] = [failed.message, ...failed.reasons].map(worded);
  const detail = new proto.ErrorResourceInitFailed();
  detail.setId(id);
  detail.setProperties(state);
  detail.setReasonsList(reasons);
  detail.setRefreshBeforeUpdate(isRefreshedFirst);
  const packed = new any.Any();
  packed.pack(detail.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
  const whole = new status.Status();
  whole.setCode(grpc.status.UNKNOWN);
  whole.setMessage(message);
  whole.addDetails(packed);
  const metadata = new grpc.Metadata();
  metadata.add("grpc-status-details-bin", Buffer.from(whole.serializeBinary()));
  return new PartialFailure({ code: grpc.status.UNKNOWN, details: message, metadata });
}

/** Anything thrown, as the answer to a request. */
export const failureOf = (error: unknown, worded: (text: string) => string): Failure =>
  error instanceof PartialFailure
    ? error.failure
    : { code: grpc.status.UNKNOWN, details: printable(worded(messageForUser(error))) };
