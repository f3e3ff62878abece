/** `pods/exec`, `pods/attach` and `pods/portforward`: forwarded to the agent of the pod's node. */
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { PodAttachOptions, PodExecOptions, PodPortForwardOptions } from "../../../api/core/pod/connect-options.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { badRequest } from "../../../api/status.ts";
import type { HttpResponse } from "../../../http/message.ts";
import { isUpgradeRequest } from "../../../http/upgrade/forward-upgrade.ts";
import { get } from "../../../registry/get.ts";
import type { Registries } from "../../../registry/registries.ts";
import type { Scope } from "../../../registry/scope.ts";
import type { ConnectHandler } from "../../handlers/connect.ts";
import { scopeOf } from "../../handlers/target.ts";
import type { RequestContext } from "../../request/request-context.ts";
import type { AgentConnections } from "../agent-connections.ts";
import { resolveContainer } from "../resolve-container.ts";
import { isStreamCloseRequest } from "./channel-socket.ts";
import { isTunnelRequest, tunnelPortForward } from "./port-forward-tunnel.ts";
import type { StreamMetrics } from "./stream-metrics.ts";
import { type RequestedStreams, translateStreams } from "./stream-translator.ts";
import { type UpgradeDestination, upgradeConnection } from "./upgrade-connection.ts";

export interface PodStreamDeps {
  readonly registries: Registries;
  readonly agents: Pick<AgentConnections, "reach">;
  /** The gate TranslateStreamCloseWebsocketRequests. */
  readonly translatesStreams: boolean;
  /** The gate PortForwardWebsockets. */
  readonly tunnelsPortForward: boolean;
  readonly metrics: StreamMetrics;
}

export function createStreamHandlers(deps: PodStreamDeps) {
  return {
    exec: createExecHandler(deps),
    attach: createAttachHandler(deps),
    portForward: createPortForwardHandler(deps),
  };
}

function createExecHandler(deps: PodStreamDeps): ConnectHandler {
  return async (target, context, params, options) => {
    const { command = [], container = "", ...streams } = options as PodExecOptions;
    const scope = scopeOf(target, context, params);
    const pod = await findPod(deps, scope, params);
    const query = [...streamQuery(streams), ...command.map((word) => ["command", word] as const)];
    const location = await locate(deps, scope, pod, ["exec", resolveContainer(pod, container)], query);
    return await forwardCommand(deps, context, location, streams);
  };
}

function createAttachHandler(deps: PodStreamDeps): ConnectHandler {
  return async (target, context, params, options) => {
    const { container = "", ...streams } = options as PodAttachOptions;
    const scope = scopeOf(target, context, params);
    const pod = await findPod(deps, scope, params);
    const path = ["attach", resolveContainer(pod, container)] as const;
    const location = await locate(deps, scope, pod, path, streamQuery(streams));
    return await forwardCommand(deps, context, location, streams);
  };
}

function createPortForwardHandler(deps: PodStreamDeps): ConnectHandler {
  return async (target, context, params, options) => {
    const { ports = [] } = options as PodPortForwardOptions;
    const scope = scopeOf(target, context, params);
    const pod = await findPod(deps, scope, params);
    const query = ports.length === 0 ? [] : [["port", ports.join(",")] as const];
    const location = await locate(deps, scope, pod, ["portForward"], query);
    const isTunnel = deps.tunnelsPortForward && isTunnelRequest(context.request);
    return isTunnel
      ? await tunnelPortForward(context.request, location, context.signal, deps.metrics.tunnelled)
      : await forward(context, location);
  };
}

async function findPod(
  { registries }: PodStreamDeps,
  scope: Scope,
  params: Readonly<Record<string, string>>,
): Promise<Pod> {
  const { object } = await get(registries.of(podKind), scope, params.name ?? "");
  return object;
}

type Query = readonly (readonly [string, string])[];

/** The agent's names of the streams. */
function streamQuery({ stdin, stdout, stderr, tty }: Omit<PodAttachOptions, "container">): Query {
  const flags = { input: stdin, output: stdout, error: stderr, tty };
  return Object.entries(flags).flatMap(([name, flag]) => (flag === true ? [[name, "1"] as const] : []));
}

/** Throws Kubernetes' 400 for a pod without a node. */
async function locate(
  { registries, agents }: PodStreamDeps,
  scope: Scope,
  { metadata, spec }: Pod,
  [root, ...rest]: readonly [root: string, ...rest: readonly string[]],
  query: Query,
): Promise<Omit<UpgradeDestination, "headers">> {
  const { name = "", namespace = "" } = metadata ?? {};
  const nodeName = spec?.nodeName ?? "";
  if (nodeName === "") throw badRequest(`pod ${name} does not have a host assigned`);
  const { object: node } = await get(registries.of(nodeKind), { ...scope, namespace: "" }, nodeName);
  const path = [root, namespace, name, ...rest].map(encodeURIComponent).join("/");
  // Sorted by name as Go's `url.Values`; the order of the words of a command stays.
  const sorted = new URLSearchParams(query.map(([key, value]) => [key, value]));
  sorted.sort();
  const search = sorted.toString();
  return { secure: true, ...agents.reach(node), path: search === "" ? `/${path}` : `/${path}?${search}` };
}

async function forwardCommand(
  { translatesStreams, metrics }: PodStreamDeps,
  context: RequestContext,
  location: UpgradeDestination,
  streams: RequestedStreams,
): Promise<HttpResponse> {
  const { request, signal } = context;
  return translatesStreams && isStreamCloseRequest(request)
    ? translateStreams(request, location, { streams, signal, requests: metrics.translated })
    : await forward(context, location);
}

async function forward(context: RequestContext, location: UpgradeDestination): Promise<HttpResponse> {
  if (!isUpgradeRequest(context.request)) throw badRequest("Upgrade request required");
  return await upgradeConnection(context.request, location, context.signal);
}
