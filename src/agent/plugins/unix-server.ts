/** A gRPC server on a Unix socket, with serializers from our schemas. */

import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import * as grpc from "@grpc/grpc-js";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import { checkSocketPath } from "../../std/net/socket-path.ts";

/** Rejects with the error that the client gets; one with a gRPC code keeps it. */
export type UnaryHandler = (request: never) => Promise<unknown>;

/** An error with the gRPC status code that the client gets. */
export class StatusCodeError extends Error {
  override readonly name = "StatusCodeError";
  readonly code: grpc.status;

  constructor(code: keyof typeof grpc.status, message: string) {
    super(message);
    this.code = grpc.status[code];
  }
}

/** Replaces the socket of a server before it. Rejects when the path cannot be bound. */
export async function serveUnix(
  path: string,
  methods: Readonly<Record<string, GrpcMethod>>,
  handlers: Readonly<Record<string, UnaryHandler>>,
): Promise<AsyncDisposable> {
  checkSocketPath(path);
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  await rm(path, { force: true });
  const server = new grpc.Server();
  const definitions = Object.entries(methods).map(
    ([name, { path: method, request, response }]) => [name, defineUnaryMethod(method, request, response)] as const,
  );
  const implementations = Object.entries(handlers).map(([name, handle]) => [name, toGrpcHandler(handle)] as const);
  server.addService(Object.fromEntries(definitions), Object.fromEntries(implementations));
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${path}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return {
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
      await rm(path, { force: true });
    },
  };
}

function toGrpcHandler(handle: UnaryHandler): grpc.handleUnaryCall<unknown, unknown> {
  return ({ request }, done) => {
    handle(request as never)
      .then((response) => done(null, response))
      .catch((error: unknown) => {
        const code = error instanceof StatusCodeError ? error.code : grpc.status.UNKNOWN;
        done({ code, details: error instanceof Error ? error.message : String(error) });
      });
  };
}
