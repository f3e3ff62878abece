/** Definitions of unary gRPC methods for `@grpc/grpc-js` clients and servers. */

import type { Infer, ObjectSchema } from "../schema.ts";
import { decodeProtobuf } from "./decode.ts";
import { encodeProtobuf } from "./encode.ts";

export interface UnaryMethod<Q, A> {
  /** `/csi.v1.Node/NodeGetInfo` */
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (request: Q) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Q;
  readonly responseSerialize: (response: A) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => A;
}

export function defineUnaryMethod<Q extends ObjectSchema, A extends ObjectSchema>(
  path: string,
  request: Q,
  response: A,
): UnaryMethod<Infer<Q>, Infer<A>> {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (value) => Buffer.from(encodeProtobuf(request, value)),
    requestDeserialize: (bytes) => decodeProtobuf(request, bytes) as Infer<Q>,
    responseSerialize: (value) => Buffer.from(encodeProtobuf(response, value)),
    responseDeserialize: (bytes) => decodeProtobuf(response, bytes) as Infer<A>,
  };
}
