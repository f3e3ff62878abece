/** The proxies to pods, services and nodes. */

import { isIPv6 } from "node:net";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import type { HttpResponse } from "../../http/message.ts";
import { get } from "../../registry/get.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { ConnectHandler } from "../handlers/connect.ts";
import { scopeOf } from "../handlers/target.ts";
import type { RequestContext } from "../request/request-context.ts";
import type { AgentConnections } from "./agent-connections.ts";
import { isReachable, type NamedPort, splitNamedPort } from "./destination.ts";
import type { Destination, RequestForwarder } from "./forward.ts";
import { type LinkContext, rewriteLinks } from "./rewrite-links.ts";

export interface ProxyDeps {
  readonly registries: Registries;
  readonly agents: Pick<AgentConnections, "reach">;
  readonly forwarder: RequestForwarder;
  readonly random: RandomSource;
}

/** By the plural of what it leads to. */
export const createProxyHandlers = (deps: ProxyDeps) => ({
  pods: proxyHandler(deps, podDestination),
  services: proxyHandler(deps, serviceDestination),
  nodes: proxyHandler(deps, nodeDestination),
});

type FindDestination = (deps: ProxyDeps, scope: Scope, named: NamedPort, text: string) => Promise<Destination>;

function proxyHandler(deps: ProxyDeps, find: FindDestination): ConnectHandler {
  return async (target, context, params) => {
    const text = params.name ?? "";
    const named = splitNamedPort(text);
    if (named === undefined) throw badRequest(`invalid ${target.kind.singular} request ${goQuote(text)}`);
    const destination = await find(deps, scopeOf(target, context, params), named, text);
    const path = proxiedPath(context);
    const { method, upgradable } = context.request;
    if (upgradable === true) {
      return await deps.forwarder.upgrade(context.request, { ...destination, path: path || "/" }, context.signal);
    }
    if (path === "" && (method === "GET" || method === "HEAD")) return redirectToDirectory(context);
    const response = await deps.forwarder.forward(
      context.request,
      { ...destination, path: path || "/" },
      context.signal,
    );
    return rewriteLinks(response, linkContext(context, destination, path));
  };
}

/** The index of `proxy` in the segments of `/api/v1/nodes/NAME/proxy`, the first of which is empty. */
const PROXY_SEGMENT = 5;

/** The path after `…/NAME/proxy`, percent-encoded. The router rejects paths with `..`. */
function proxiedPath({ request, info }: RequestContext): string {
  // An encoded slash separates segments too, as in the router.
  const separators = [...request.path.matchAll(/\/|%2f/gi)];
  const proxySegment = info.namespace === "" ? PROXY_SEGMENT : PROXY_SEGMENT + 2;
  const slash = separators[proxySegment];
  return slash === undefined ? "" : `/${request.path.slice(slash.index + slash[0].length)}`;
}

function linkContext({ request }: RequestContext, { host, port }: Destination, path: string): LinkContext {
  const prefix = request.path.slice(0, request.path.length - path.length);
  const backend = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return { prefix, hosts: [backend, request.headers.host ?? backend] };
}

/** Adds a trailing slash, so that relative links in the response work. */
function redirectToDirectory({ request }: RequestContext): HttpResponse {
  const query = request.query === "" ? "" : `?${request.query}`;
  return { status: 301, headers: { location: `${request.path}/${query}` }, body: new Uint8Array() };
}

async function podDestination({ registries }: ProxyDeps, scope: Scope, named: NamedPort): Promise<Destination> {
  const { object: pod } = await get(registries.of(podKind), scope, named.name);
  const first = (pod.spec?.containers ?? []).find(({ ports = [] }) => ports.length > 0)?.ports?.[0];
  const host = pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? "";
  if (!isReachable(host)) throw badRequest("address not allowed");
  const secure = named.scheme === "https";
  const port = named.port === "" ? (first?.containerPort ?? (secure ? 443 : 80)) : parsePort(named.port);
  return { secure, host, port, path: "" };
}

async function serviceDestination(
  { registries, random }: ProxyDeps,
  scope: Scope,
  named: NamedPort,
  text: string,
): Promise<Destination> {
  const { object: service } = await get(registries.of(serviceKind), scope, named.name);
  const portName = /^\d+$/.test(named.port) ? servicePortName(service, Number(named.port)) : named.port;
  const { object: endpoints } = await get(registries.of(endpointsKind), scope, named.name);
  const noEndpoints = (name: string): StatusError => unavailable(`no endpoints available for service ${goQuote(name)}`);
  if ((endpoints.subsets ?? []).length === 0) throw noEndpoints(named.name);
  const candidates = await podAddresses(registries, scope, endpoints, portName);
  const chosen = candidates[Math.floor(random.fraction() * candidates.length)];
  if (chosen === undefined) throw noEndpoints(text);
  return { secure: named.scheme === "https", ...chosen, path: "" };
}

function servicePortName({ metadata, spec }: Service, port: number): string {
  const found = (spec?.ports ?? []).find((one) => one.port === port);
  if (found !== undefined) return found.name ?? "";
  throw unavailable(`no service port ${port} found for service ${goQuote(metadata?.name ?? "")}`);
}

/** Only addresses of pods: a user that may write endpoints must not direct the server to other addresses. */
async function podAddresses(registries: Registries, scope: Scope, { subsets = [] }: Endpoints, portName: string) {
  const pods = registries.of(podKind);
  const found: { readonly host: string; readonly port: number }[] = [];
  for (const { addresses = [], ports = [] } of subsets) {
    const port = ports.find(({ name = "" }) => name === portName)?.port;
    if (port === undefined) continue;
    for (const { ip, targetRef } of addresses) {
      if (targetRef?.kind !== "Pod" || !isReachable(ip)) continue;
      const namespace = targetRef.namespace ?? scope.namespace;
      const key = pods.objects.key(namespace, targetRef.name ?? "");
      const pod = (await pods.freshCache(scope)).get(key)?.object;
      if (pod?.status?.podIPs?.some((one) => one.ip === ip) === true) found.push({ host: ip, port });
    }
  }
  return found;
}

async function nodeDestination(
  { registries, agents }: ProxyDeps,
  scope: Scope,
  named: NamedPort,
): Promise<Destination> {
  const { object: node } = await get<Node>(registries.of(nodeKind), scope, named.name);
  const nodeAgent = agents.reach(node);
  if (named.port === "" || named.port === String(nodeAgent.port)) return { ...nodeAgent, secure: true, path: "" };
  if (!isReachable(nodeAgent.host)) throw badRequest("address not allowed");
  return { secure: named.scheme === "https", host: nodeAgent.host, port: parsePort(named.port), path: "" };
}

function parsePort(port: string): number {
  const number = Number(port);
  if (!/^\d{1,5}$/.test(port) || number < 1 || number > 65_535) throw badRequest(`invalid port ${goQuote(port)}`);
  return number;
}

function unavailable(message: string): StatusError {
  return new StatusError(503, "ServiceUnavailable", message);
}
