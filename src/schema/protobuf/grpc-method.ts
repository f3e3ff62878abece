import type { ObjectSchema } from "../schema.ts";

/** A method of a gRPC service, with the messages of its request and its response. */
export interface GrpcMethod<Q extends ObjectSchema = ObjectSchema, A extends ObjectSchema = ObjectSchema> {
  /** `/csi.v1.Node/NodeGetInfo` */
  readonly path: string;
  readonly request: Q;
  readonly response: A;
}
