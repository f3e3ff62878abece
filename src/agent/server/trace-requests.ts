/** Spans of requests to the agent, which continue those of the API server. */
import type { Handler } from "../../http/message.ts";
import { HTTP_SCOPE } from "../../tracing/span.ts";
import { parseTraceContext } from "../../tracing/trace-context.ts";
import type { Tracer } from "../../tracing/tracer.ts";

/** A stream's span ends with its headers: it may last for days. */
export function traceRequests(handler: Handler, tracer: Tracer): Handler {
  return async (request) => {
    const { method, path, headers, peer } = request;
    // The first segment: `/containerLogs`, `/pods`. Others would give each pod spans of its own name.
    const name = `/${path.split("/", 2)[1] ?? ""}`;
    const attributes = {
      "http.method": method,
      "http.target": path,
      "net.sock.peer.addr": peer.address,
      "net.sock.peer.port": peer.port,
    };
    const options = { name, kind: "server", scope: HTTP_SCOPE, attributes } as const;
    const span = tracer.start(options, { remote: parseTraceContext(headers) });
    return await span.run(async () => {
      const response = await handler(request);
      span.setHttpStatus(response.status);
      return response;
    });
  };
}
