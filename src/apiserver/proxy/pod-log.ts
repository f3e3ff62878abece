/** `pods/log`: forwards the request to the agent of the pod's node. */
import { Readable } from "node:stream";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { badRequest, invalid, notFound, StatusError } from "../../api/status.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { isWebSocketRequest } from "../../http/websocket/handshake.ts";
import { get } from "../../registry/get.ts";
import type { Registry } from "../../registry/registry.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  renderFieldError,
} from "../../schema/validation/field-error.ts";
import { type ResourceHandler, scopeOf } from "../handlers/target.ts";
import { type LogProtocol, logWebSocket, negotiateLogProtocol } from "../responses/websocket-stream.ts";
import type { AgentConnections, AgentResponse } from "./agent-connections.ts";
import { resolveContainer } from "./resolve-container.ts";

/** The options that are forwarded. */
const BOOLEAN_OPTIONS = ["follow", "previous", "timestamps"] as const;
const NUMBER_OPTIONS = ["tailLines", "limitBytes", "sinceSeconds"] as const;
const STREAMS = ["Stdout", "Stderr", "All"];
/** The maximum size of an agent's error response. */
const ERROR_BODY_BYTES_MAX = 64 * 1024;

export interface PodLogDeps {
  readonly pods: Registry<Pod>;
  readonly nodes: Registry<Node>;
  readonly agents: Pick<AgentConnections, "get">;
  /** The gate PodLogsQuerySplitStreams. */
  readonly splitLogs: boolean;
}

export function createPodLogHandler({ pods, nodes, agents, splitLogs }: PodLogDeps): ResourceHandler {
  return async (target, context, params) => {
    const scope = scopeOf(target, context, params);
    const name = params.name ?? "";
    const { object: pod } = await get(pods, scope, name);
    const query = agentLogQuery(context.info.query, name, splitLogs);
    const container = resolveContainer(pod, context.info.query.get("container") ?? "");
    const nodeName = pod.spec?.nodeName ?? "";
    const webSocket = isWebSocketRequest(context.request) ? negotiateLogProtocol(context.request) : undefined;
    if (nodeName === "" && webSocket === undefined) return { status: 204, headers: {}, body: new Uint8Array() };
    if (nodeName === "") return logResponse(context.request, Readable.from([]), webSocket);
    const node = await findNode(nodes, nodeName, context.signal);
    const segments = [params.namespace ?? "", name, container].map(encodeURIComponent).join("/");
    const path = `/containerLogs/${segments}${query === "" ? "" : `?${query}`}`;
    const response = await agents.get(node, path, context.signal);
    if (response.status !== 200) throw await toStatusError(response, name);
    return logResponse(context.request, response.body, webSocket);
  };
}

function logResponse(
  request: HttpRequest,
  body: AsyncIterable<Uint8Array>,
  webSocket: LogProtocol | undefined,
): HttpResponse {
  if (webSocket !== undefined) return logWebSocket(request, body, webSocket);
  return { status: 200, headers: { "content-type": "text/plain" }, body, resetAtShutdown: true };
}

async function findNode(nodes: Registry<Node>, name: string, signal: AbortSignal): Promise<Node> {
  const key = nodes.objects.key(undefined, name);
  const found = (await nodes.freshCache({ signal })).get(key);
  if (found === undefined) throw notFound({ group: "", resource: "nodes", name });
  return found.object;
}

function agentLogQuery(query: URLSearchParams, pod: string, splitLogs: boolean): string {
  const result = new URLSearchParams();
  const errors: FieldError[] = [];
  for (const flag of BOOLEAN_OPTIONS) {
    const value = query.get(flag);
    if (value !== null && value !== "false" && value !== "0") result.set(flag, "true");
  }
  for (const number of NUMBER_OPTIONS) {
    const text = query.get(number);
    if (text === null) continue;
    if (!/^[-+]?\d{1,15}$/.test(text))
      throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
    const value = Number(text);
    if (number === "tailLines" ? value < 0 : value < 1) {
      const minimum = number === "tailLines" ? "must be greater than or equal to 0" : "must be greater than 0";
      errors.push(invalidField(number, value, minimum));
    }
    result.set(number, String(value));
  }
  const sinceTime = query.get("sinceTime");
  if (sinceTime !== null && sinceTime !== "") {
    if (Number.isNaN(Date.parse(sinceTime)))
      throw badRequest(`parsing time ${JSON.stringify(sinceTime)}: it is not RFC 3339`);
    if (result.has("sinceSeconds")) {
      const last = errors.at(-1)?.field === "sinceSeconds" ? errors.length - 1 : errors.length;
      errors[last] = forbiddenField("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified");
    }
    result.set("sinceTime", sinceTime);
  }
  const stream = query.get("stream");
  if (stream !== null) {
    errors.push(...validateStream(stream, splitLogs, query.has("tailLines")));
    result.set("stream", stream);
  }
  if (errors.length > 0) throw invalid({ group: "", resource: "PodLogOptions", name: pod }, errors, renderFieldError);
  return result.toString();
}

function validateStream(stream: string, splitLogs: boolean, hasTail: boolean): readonly FieldError[] {
  if (!splitLogs) return [forbiddenField("stream", "may not be specified")];
  if (!STREAMS.includes(stream)) return [notSupported("stream", stream, STREAMS)];
  if (stream === "All" || !hasTail) return [];
  return [forbiddenField("[]", "`tailLines` and specific `stream` are mutually exclusive for now")];
}

/** Converts the agent's error response to a `Status`. */
async function toStatusError(response: AgentResponse, pod: string): Promise<StatusError> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > ERROR_BODY_BYTES_MAX) break;
  }
  const text = Buffer.concat(chunks).toString("utf8").trim();
  const message = statusMessage(text) ?? text;
  switch (response.status) {
    case 400:
      return badRequest(message);
    case 404:
      return new StatusError(404, "NotFound", message === "" ? "the agent knows no such container" : message, {
        details: {},
      });
    case 405: {
      const text = `the server does not allow this method on the requested resource ( pods/log ${pod})`;
      return new StatusError(405, "MethodNotAllowed", text, { details: { name: pod, kind: "pods/log" } });
    }
    case 401:
    case 403:
      return new StatusError(500, "InternalError", `the agent refused the API server: ${message}`);
    default:
      return new StatusError(Math.min(response.status, 500), "InternalError", message);
  }
}

function statusMessage(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}
