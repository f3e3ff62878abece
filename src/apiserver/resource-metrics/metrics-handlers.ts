/** `metrics.k8s.io`: the usage of nodes and running pods, with the responses of metrics-server. */

import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { matchesFields, parseFieldSelector } from "../../api/meta/selectors/selector.ts";
import { nodeMetricsKind, podMetricsKind } from "../../api/metrics/kinds.ts";
import type { NodeMetrics, PodMetrics } from "../../api/metrics/schema.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { notFound, StatusError } from "../../api/status.ts";
import { get } from "../../registry/get.ts";
import { list } from "../../registry/list.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Revision } from "../../storage/store.ts";
import { EncodedObject } from "../../storage/watch/encoded-object.ts";
import { systemScope } from "../control-plane/ensure.ts";
import { parseListQuery } from "../handlers/query.ts";
import { type ResourceHandler, type ResourceTarget, responseOptionsOf, scopeOf } from "../handlers/target.ts";
import type { RequestContext } from "../request/request-context.ts";
import { isTrue } from "../request/request-info.ts";
import { listResponse, writtenResponse } from "../responses/object-response.ts";
import type { AgentScraper } from "./agent-scraper.ts";
import { computePodUsage, computeUsage, formatWindow } from "./usage.ts";

/** The nodes that are scraped. */
export async function listNodes(nodes: Registry<Node>, signal: AbortSignal): Promise<readonly Node[]> {
  const { items } = await list(nodes, systemScope("", signal), { resourceVersion: "0" });
  return items.map(({ object }) => object);
}

export interface MetricsHandlerOptions {
  readonly pods: Registry<Pod>;
  readonly nodes: Registry<Node>;
  readonly scraper: Pick<AgentScraper, "request" | "samplesOf">;
}

/** By verb and kind. */
export function createMetricsHandlers({ pods, nodes, scraper }: MetricsHandlerOptions) {
  const ofPod = (pod: Pod, now: string): PodMetrics | undefined => {
    const { name, namespace, labels } = pod.metadata ?? {};
    const samples = scraper.samplesOf(pod.spec?.nodeName ?? "");
    const found = computePodUsage(samples?.pods.get(`${namespace}/${name}`));
    if (found === undefined) return undefined;
    const metadata = { name, namespace, creationTimestamp: now, ...(labels === undefined ? {} : { labels }) };
    const { timeMs, windowMs, containers } = found;
    return { metadata, timestamp: formatTime(timeMs), window: formatWindow(windowMs), containers };
  };
  const ofNode = (node: Node, now: string): NodeMetrics | undefined => {
    const { name, labels } = node.metadata ?? {};
    const found = computeUsage(scraper.samplesOf(name ?? "")?.node);
    if (found === undefined) return undefined;
    const metadata = { name, creationTimestamp: now, ...(labels === undefined ? {} : { labels }) };
    const { timeMs, windowMs, usage } = found;
    return { metadata, timestamp: formatTime(timeMs), window: formatWindow(windowMs), usage };
  };
  const podSource = { kind: podMetricsKind, registry: pods, isMeasured: isRunning, measure: ofPod, scraper };
  const nodeSource = { kind: nodeMetricsKind, registry: nodes, isMeasured: () => true, measure: ofNode, scraper };
  return {
    "get PodMetrics": createGetHandler(podSource),
    "list PodMetrics": createListHandler(podSource),
    "get NodeMetrics": createGetHandler(nodeSource),
    "list NodeMetrics": createListHandler(nodeSource),
  };
}

interface MetricsSource<T extends ApiObject, M extends ApiObject> {
  readonly kind: Kind<M>;
  readonly registry: Registry<T>;
  readonly isMeasured: (object: T) => boolean;
  /** Undefined before there are two samples. */
  readonly measure: (object: T, now: string) => M | undefined;
  readonly scraper: MetricsHandlerOptions["scraper"];
}

function createGetHandler<T extends ApiObject, M extends ApiObject>(source: MetricsSource<T, M>): ResourceHandler {
  return async (target, context, params) => {
    const { kind, registry, scraper } = source;
    const responseOptions = responseOptionsOf(target, context, "object");
    const scope = sourceScope(target, context, params);
    const name = params.name ?? "";
    const { object } = await get(registry, scope, name, "0");
    if (!source.isMeasured(object)) throw notFound(registry.subject(scope, name));
    await scraper.request(context.signal);
    const found = source.measure(object, formatTime(target.settings.clock.now()));
    if (found === undefined) {
      const qualifiedName = kind.namespaced ? `${scope.namespace}/${name}` : name;
      throw notFound({ group: target.group, resource: kind.kind.toLowerCase(), name: qualifiedName });
    }
    return writtenResponse(200, kind, found, responseOptions);
  };
}

function createListHandler<T extends ApiObject, M extends ApiObject>(source: MetricsSource<T, M>): ResourceHandler {
  return async (target, context, params) => {
    const { kind, registry, scraper } = source;
    const { query } = context.info;
    if (isTrue(query.get("watch"))) throw watchNotSupported(target);
    const responseOptions = responseOptionsOf(target, context, "list");
    const { labelSelector, fieldSelector = "" } = parseListQuery(query);
    const terms = parseFieldSelector(fieldSelector, kind);
    const scope = sourceScope(target, context, params);
    const page = await list(registry, scope, { labelSelector, resourceVersion: "0" });
    await scraper.request(context.signal);
    const now = formatTime(target.settings.clock.now());
    const revision = 0 as Revision;
    const items = page.items.flatMap(({ object }) => {
      if (!source.isMeasured(object) || !matchesFields<T>(terms, object, registry.kind)) return [];
      const found = source.measure(object, now);
      return found === undefined ? [] : [new EncodedObject(kind, "", found, revision)];
    });
    return listResponse(kind, { items, revision }, responseOptions);
  };
}

/** The scope in the registry of the measured objects, which are in the core group. */
function sourceScope(target: ResourceTarget, context: RequestContext, params: Readonly<Record<string, string>>): Scope {
  const { namespace, user } = scopeOf(target, context, params);
  return { namespace, group: "", user, signal: context.signal };
}

/** metrics-server serves pods in phase Running only. */
function isRunning({ status }: Pod): boolean {
  return status?.phase === "Running";
}

function watchNotSupported({ kind, group }: ResourceTarget): StatusError {
  const message = `watch is not supported on resources of kind "${kind.plural}.${kubernetesGroup(group)}"`;
  return new StatusError(405, "MethodNotAllowed", message, { details: { group, kind: kind.plural } });
}
