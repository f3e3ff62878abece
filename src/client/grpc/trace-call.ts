/** Spans of gRPC calls, with OpenTelemetry's attributes. */
import * as grpc from "@grpc/grpc-js";
import { GRPC_SCOPE, type SpanOptions, traceHeaders } from "../../tracing/span.ts";

/** `path`: `/etcdserverpb.KV/Range` */
export function callSpan(path: string): SpanOptions {
  const [, service = "", name = ""] = path.split("/");
  const attributes = { "rpc.system": "grpc", "rpc.service": service, "rpc.method": name };
  return { name: path.slice(1), kind: "client", scope: GRPC_SCOPE, attributes };
}

/** Connects a call with the current span. */
export function traceMetadata(): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(traceHeaders())) metadata.set(name, value);
  return metadata;
}
