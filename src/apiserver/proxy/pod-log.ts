/** `pods/log`: forwards the request to the agent of the pod's node. */
import { Readable } from "node:stream";
import type { Node } from "../../api/core/node/schema.ts";
import { decodeLogQuery, type LogQuery, OptionError, validateLogQuery } from "../../api/core/pod/log-options.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { badRequest, invalid, notFound, StatusError } from "../../api/status.ts";
import { isWebSocketRequest } from "../../http/websocket/handshake.ts";
import { get } from "../../registry/get.ts";
import type { Registry } from "../../registry/registry.ts";
import { type FieldError, forbiddenField, renderFieldError } from "../../schema/validation/field-error.ts";
import { formatInstant } from "../../schema/value/time.ts";
import { ByteChunks } from "../../std/collections/byte-chunks.ts";
import { type ResourceHandler, scopeOf } from "../handlers/target.ts";
import { logWebSocket } from "../responses/websocket-stream.ts";
import type { AgentConnections, AgentResponse } from "./agent-connections.ts";
import { resolveContainer } from "./resolve-container.ts";

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
    // The log is text whatever is negotiated, but for errors.
    target.settings.negotiator.negotiate(context, "log", false);
    const options = decodeQuery(context.info.query);
    checkQuery(options, name, splitLogs);
    const { object: pod } = await get(pods, scope, name);
    const query = agentLogQuery(options, splitLogs);
    const container = resolveContainer(pod, options.container);
    const nodeName = pod.spec?.nodeName ?? "";
    const isWebSocket = isWebSocketRequest(context.request);
    if (nodeName === "" && !isWebSocket) return { status: 204, headers: {}, body: new Uint8Array() };
    if (nodeName === "") return await logWebSocket(context.request, Readable.from([]));
    const node = await findNode(nodes, nodeName, context.signal);
    const segments = [params.namespace ?? "", name, container].map(encodeURIComponent).join("/");
    const path = `/containerLogs/${segments}${query === "" ? "" : `?${query}`}`;
    const response = await agents.get(node, path, context.signal);
    if (response.status !== 200) throw await toStatusError(response, name);
    if (isWebSocket) return await logWebSocket(context.request, response.body);
    return { status: 200, headers: { "content-type": "text/plain" }, body: response.body, resetAtShutdown: true };
  };
}

async function findNode(nodes: Registry<Node>, name: string, signal: AbortSignal): Promise<Node> {
  const key = nodes.objects.key(undefined, name);
  const found = (await nodes.freshCache({ signal })).get(key);
  if (found === undefined) throw notFound({ group: "", resource: "nodes", name });
  return found.object;
}

/** Throws Kubernetes' 400 for the first option that cannot be decoded. */
function decodeQuery(query: URLSearchParams): LogQuery {
  try {
    return decodeLogQuery(query);
  } catch (error) {
    throw error instanceof OptionError ? badRequest(error.message) : error;
  }
}

/** Throws Kubernetes' 422. */
function checkQuery(options: LogQuery, name: string, splitLogs: boolean): void {
  const errors = splitLogs
    ? validateLogQuery(options)
    : [...validateLogQuery({ ...options, stream: undefined }), ...streamErrors(options)];
  if (errors.length > 0) throw invalid({ group: "", resource: "PodLogOptions", name }, errors, renderFieldError);
}

function streamErrors({ stream }: LogQuery): readonly FieldError[] {
  return stream === undefined ? [] : [forbiddenField("stream", "may not be specified")];
}

/** The query for the agent, sorted by name. */
function agentLogQuery(options: LogQuery, splitLogs: boolean): string {
  const { follow, limitBytes, previous, sinceSeconds, sinceTime, stream = "All", tailLines, timestamps } = options;
  const values = {
    follow: follow || undefined,
    limitBytes,
    previous: previous || undefined,
    sinceSeconds,
    // As kube-apiserver without a fraction of a second.
    sinceTime: sinceTime === undefined ? undefined : formatInstant({ ...sinceTime, nanos: 0 }, false),
    stream: splitLogs ? stream : undefined,
    tailLines,
    timestamps: timestamps || undefined,
  };
  const set = Object.entries(values).filter(([, value]) => value !== undefined);
  return new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
}

/** Converts the agent's error response to a `Status`. */
async function toStatusError(response: AgentResponse, pod: string): Promise<StatusError> {
  const chunks = new ByteChunks();
  for await (const chunk of response.body) {
    chunks.add(chunk);
    if (chunks.length > ERROR_BODY_BYTES_MAX) break;
  }
  const text = chunks.concat().toString("utf8").trim();
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
