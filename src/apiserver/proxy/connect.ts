/** `pods/exec` and its like, and the proxies to pods, services and nodes. */

import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import type { HttpResponse } from "../../http/message.ts";
import { get } from "../../registry/get.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { type ResourceHandler, scopeOf } from "../handlers/target.ts";
import type { RequestContext } from "../request/request-context.ts";
import type { AgentConnections } from "./agent-connections.ts";
import { isReachable, type NamedPort, splitNamedPort } from "./destination.ts";
import type { Destination, RequestForwarder } from "./forward.ts";

export interface ConnectDeps {
  readonly registries: Registries;
  readonly agents: AgentConnections;
  readonly forwarding: RequestForwarder;
  readonly random: RandomSource;
}

export type Connect = Readonly<Record<string, ResourceHandler>>;

/** By plural and subresource: `pods/exec`. */
export function connectHandlers(deps: ConnectDeps): Connect {
  return {
    "pods/exec": streams(deps, true),
    "pods/attach": streams(deps, true),
    "pods/portforward": streams(deps, false),
    "pods/proxy": proxied(deps, podDestination),
    "services/proxy": proxied(deps, serviceDestination),
    "nodes/proxy": proxied(deps, nodeDestination),
  };
}

/** Throws what Kubernetes does where there is nothing to open a stream to, and a 501 where there is. */
function streams({ registries }: ConnectDeps, toContainer: boolean): ResourceHandler {
  return async (target, context, params) => {
    const { object: pod } = await get(registries.of(podKind), scopeOf(target, context, params), params.name ?? "");
    if (toContainer) checkContainer(pod, context.info.query.get("container") ?? "");
    const name = pod.metadata?.name ?? "";
    if (!pod.spec?.nodeName) throw badRequest(`pod ${name} does not have a host assigned`);
    const { headers } = context.request;
    if (!/\bupgrade\b/i.test(headers.connection ?? "") || !headers.upgrade)
      throw badRequest("Upgrade request required");
    const message = `pods/${context.info.subresource}: this server does not open streams to containers`;
    throw new StatusError(501, "NotImplemented", message);
  };
}

function checkContainer({ metadata, spec }: Pod, asked: string): void {
  const name = metadata?.name ?? "";
  const containers = spec?.containers ?? [];
  if (asked === "") {
    if (containers.length === 1) return;
    const choice = containers.length === 0 ? "" : `, choose one of: [${containers.map((one) => one.name).join(" ")}]`;
    throw badRequest(`a container name must be specified for pod ${name}${choice}`);
  }
  const all = [...containers, ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])];
  if (!all.some((one) => one.name === asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`);
}

type FindDestination = (deps: ConnectDeps, scope: Scope, named: NamedPort, text: string) => Promise<Destination>;

function proxied(deps: ConnectDeps, find: FindDestination): ResourceHandler {
  return async (target, context, params) => {
    const text = params.name ?? "";
    const named = splitNamedPort(text);
    if (named === undefined) throw badRequest(`invalid ${target.kind.singular} request ${goQuote(text)}`);
    const destination = await find(deps, scopeOf(target, context, params), named, text);
    const path = tailOf(context);
    if (path === "") return moved(context);
    if (context.request.headers.upgrade !== undefined) {
      throw new StatusError(501, "NotImplemented", "this server proxies plain HTTP alone");
    }
    return await deps.forwarding.forward(context.request, { ...destination, path }, context.signal);
  };
}

/** Where `proxy` stands among the segments of `/api/v1/nodes/NAME/proxy`, which begin with an empty one. */
const PROXY_AT = 5;

/** What stands behind `…/NAME/proxy`, as it was sent. The router has refused paths that climb. */
function tailOf({ request, info }: RequestContext): string {
  const segments = request.path.split("/");
  const place = info.namespace === "" ? PROXY_AT : PROXY_AT + 2;
  return segments.length === place + 1 ? "" : `/${segments.slice(place + 1).join("/")}`;
}

/** So that relative links in what is answered lead somewhere. */
function moved({ request }: RequestContext): HttpResponse {
  const query = request.query === "" ? "" : `?${request.query}`;
  return { status: 301, headers: { location: `${request.path}/${query}` }, body: new Uint8Array() };
}

async function podDestination({ registries }: ConnectDeps, scope: Scope, named: NamedPort): Promise<Destination> {
  const { object: pod } = await get(registries.of(podKind), scope, named.name);
  const first = (pod.spec?.containers ?? []).find(({ ports = [] }) => ports.length > 0)?.ports?.[0];
  const host = pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? "";
  if (!isReachable(host)) throw badRequest("address not allowed");
  const secure = named.scheme === "https";
  const port = named.port === "" ? (first?.containerPort ?? (secure ? 443 : 80)) : numberOf(named.port);
  return { secure, host, port, path: "" };
}

async function serviceDestination(
  { registries, random }: ConnectDeps,
  scope: Scope,
  named: NamedPort,
  text: string,
): Promise<Destination> {
  const { object: service } = await get(registries.of(serviceKind), scope, named.name);
  const portName = /^\d+$/.test(named.port) ? nameOfPort(service, Number(named.port)) : named.port;
  const { object: endpoints } = await get(registries.of(endpointsKind), scope, named.name);
  const nowhere = (name: string): StatusError => unavailable(`no endpoints available for service ${goQuote(name)}`);
  if ((endpoints.subsets ?? []).length === 0) throw nowhere(named.name);
  const candidates = await addressesOf(registries, scope, endpoints, portName);
  const chosen = candidates[Math.floor(random.fraction() * candidates.length)];
  if (chosen === undefined) throw nowhere(text);
  return { secure: named.scheme === "https", ...chosen, path: "" };
}

function nameOfPort({ metadata, spec }: Service, port: number): string {
  const found = (spec?.ports ?? []).find((one) => one.port === port);
  if (found !== undefined) return found.name ?? "";
  throw unavailable(`no service port ${port} found for service ${goQuote(metadata?.name ?? "")}`);
}

/** Those that are really pods': anybody who may write endpoints could otherwise send the server anywhere. */
async function addressesOf(registries: Registries, scope: Scope, { subsets = [] }: Endpoints, portName: string) {
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
  { registries, agents }: ConnectDeps,
  scope: Scope,
  named: NamedPort,
): Promise<Destination> {
  const { object: node } = await get<Node>(registries.of(nodeKind), scope, named.name);
  const own = agents.reach(node);
  if (named.port === "" || named.port === String(own.port)) return { ...own, secure: true, path: "" };
  if (!isReachable(own.host)) throw badRequest("address not allowed");
  return { secure: named.scheme === "https", host: own.host, port: numberOf(named.port), path: "" };
}

function numberOf(port: string): number {
  const number = Number(port);
  if (!/^\d{1,5}$/.test(port) || number < 1 || number > 65_535) throw badRequest(`invalid port ${goQuote(port)}`);
  return number;
}

function unavailable(message: string): StatusError {
  return new StatusError(503, "ServiceUnavailable", message);
}
