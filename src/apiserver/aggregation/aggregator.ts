/**
 * Follows the API services of the cluster: forwards requests of those that extension servers serve, and adds them to
 * discovery and OpenAPI. The code for extension servers is loaded with the first of them.
 */
import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import type { HttpResponse } from "../../http/message.ts";
import { lazy } from "../../std/async/lazy.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { ExternalVersion } from "../discovery/external-discovery.ts";
import { AUTOMANAGED_LABEL } from "../discovery/local-api-services.ts";
import type { ServerMetrics } from "../metrics/server-metrics.ts";
import type { RequestContext } from "../request/request-context.ts";
import type { ExtensionServers, ExtensionServersDeps } from "./extension-servers.ts";
import { createAggregatorMetrics } from "./metrics.ts";
import type { ExtensionSpec } from "./openapi-aggregator.ts";
import { type ExtensionApi, isExtensionApi, type RegisteredApi, toRegisteredApi } from "./registered-api.ts";

export type AggregatorDeps = Omit<ExtensionServersDeps, "onDiscovery">;

export interface AggregatorParts
  extends Pick<ExtensionServersDeps, "registries" | "log" | "stopping" | "clientCertificate" | "connector"> {
  readonly metrics: ServerMetrics;
}

export function createAggregator(
  { admission, observability, rejectsExtensionRedirects }: ApiServerConfig,
  { metrics, ...parts }: AggregatorParts,
): Aggregator {
  return new Aggregator({
    ...parts,
    metrics: createAggregatorMetrics(metrics.registry),
    onTermination: metrics.requests.onTermination,
    routesToEndpoints: admission.serviceEndpoints,
    rejectsRedirects: rejectsExtensionRedirects,
    sendsUid: observability.features.some(({ name, enabled }) => enabled && name === "RemoteRequestHeaderUID"),
  });
}

const RETRY_MS = 1000;
/** The API service `v1.`: it stands for all paths under `/api`. */
const CORE_VERSION = "/v1";
/** API services of clients that have an effect; further ones are logged and ignored. */
const API_SERVICES_MAX = 500;

export class Aggregator implements AsyncDisposable {
  readonly #deps: AggregatorDeps;
  /** Those that this server does not manage, by name. */
  readonly #registered = new Map<string, RegisteredApi>();
  /** By `GROUP/VERSION`; the group of core kinds is empty. */
  readonly #extensions = new Map<string, ExtensionApi>();
  readonly #load: () => Promise<ExtensionServers>;
  #servers: ExtensionServers | undefined;
  #changeCount = 0;

  constructor(deps: AggregatorDeps) {
    this.#deps = deps;
    this.#load = lazy(async () => {
      const { ExtensionServers } = await import("./extension-servers.ts");
      this.#servers = new ExtensionServers({ ...deps, onDiscovery: () => void this.#changeCount++ });
      return this.#servers;
    });
  }

  /** Runs until the server stops. Never rejects. `onReady` is called when the existing API services are in effect. */
  async run(onReady: () => void): Promise<void> {
    const { registries, log, stopping } = this.#deps;
    const { clock } = registries.deps;
    while (!stopping.aborted) {
      try {
        await this.#follow(onReady);
      } catch (error) {
        if (stopping.aborted) return;
        log.error("Restarting the watch of API services", error);
        await clock.sleep(RETRY_MS, stopping).catch(() => {});
      }
    }
  }

  /** Undefined: no extension server serves the path. */
  respond(context: RequestContext): Promise<HttpResponse> | undefined {
    if (this.#extensions.size === 0) return undefined;
    const key = groupVersionOf(context.request.path);
    const api = key === undefined ? undefined : this.#extensions.get(key);
    return api === undefined ? undefined : this.#forward(api, context);
  }

  /** Increases when `versions` has changed. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** The group versions of API services that this server does not manage. */
  versions(): readonly ExternalVersion[] {
    const listed = [...this.#registered.values()].filter(({ group }) => group !== "");
    return listed.map(({ name, group, version, groupPriority, versionPriority, service }) => {
      const { resources = [], freshness = "Stale" } = this.#servers?.discoveryOf(name) ?? {};
      const discovered = service === undefined ? undefined : { resources, freshness };
      return { group, version, groupPriority, versionPriority, discovered };
    });
  }

  readonly onAggregate = (): void => this.#deps.metrics.countAggregation();

  /** The OpenAPI v2 documents of extension servers. */
  async openApiV2(): Promise<readonly ExtensionSpec[]> {
    return this.#extensions.size === 0 ? [] : await (await this.#load()).openApi.v2();
  }

  /** The URLs of the OpenAPI v3 documents of extension servers, by path. */
  async openApiV3Paths(): Promise<ReadonlyMap<string, string>> {
    return this.#extensions.size === 0 ? new Map() : await (await this.#load()).openApi.v3();
  }

  /** Undefined: no extension server has the OpenAPI v3 document of the path `apis/GROUP/VERSION`. */
  respondOpenApiV3(path: string, context: RequestContext): Promise<HttpResponse> | undefined {
    const api = path.startsWith("apis/") ? this.#extensions.get(path.slice("apis/".length)) : undefined;
    return api === undefined ? undefined : this.#load().then((servers) => servers.openApiV3(api, context));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers?.[Symbol.asyncDispose]();
  }

  async #forward(api: ExtensionApi, context: RequestContext): Promise<HttpResponse> {
    return await (this.#servers ?? (await this.#load())).forward(api, context);
  }

  async #follow(onReady: () => void): Promise<void> {
    const { registries, stopping } = this.#deps;
    const { cache, objects } = registries.of(apiServiceKind);
    await Promise.race([cache.ready(), waitForAbort(stopping)]);
    const missing = new Set(this.#registered.keys());
    for await (const event of cache.watch({ prefix: objects.prefix(), initialEventsEnd: true, signal: stopping })) {
      if (event.type === "BOOKMARK") {
        for (const name of missing) this.#delete(name);
        missing.clear();
        onReady();
        continue;
      }
      const { object } = event.item;
      missing.delete(object.metadata?.name ?? "");
      if (event.type === "DELETED") this.#delete(object.metadata?.name ?? "");
      else await this.#put(object);
    }
  }

  async #put(object: APIService): Promise<void> {
    const api = toRegisteredApi(object);
    const { name } = api;
    // The API services of built-in kinds and of definitions; that of the resource metrics may be replaced.
    const isOwn = object.metadata?.labels?.[AUTOMANAGED_LABEL] !== undefined && api.service === undefined;
    if (isOwn) {
      this.#delete(name);
      return;
    }
    if (!this.#registered.has(name) && this.#registered.size >= API_SERVICES_MAX) {
      this.#deps.log.warn("Ignoring an API service: there are too many", { name, max: API_SERVICES_MAX });
      return;
    }
    const previous = this.#registered.get(name);
    this.#registered.set(name, api);
    this.#changeCount++;
    if (isExtensionApi(api)) {
      this.#extensions.set(`${api.group}/${api.version}`, api);
      (await this.#load()).put(api);
      return;
    }
    if (previous?.service !== undefined) this.#removeExtension(previous);
    const isLocal = object.status?.conditions?.some(({ type, reason }) => type === "Available" && reason === "Local");
    if (isLocal !== true) await (await this.#load()).setLocal(name);
  }

  #delete(name: string): void {
    const api = this.#registered.get(name);
    if (api === undefined) return;
    this.#registered.delete(name);
    this.#changeCount++;
    if (api.service !== undefined) this.#removeExtension(api);
  }

  #removeExtension({ name, group, version }: RegisteredApi): void {
    this.#extensions.delete(`${group}/${version}`);
    this.#servers?.delete(name);
  }
}

/** The key of the API service that may serve the path; undefined: there can be none. */
function groupVersionOf(path: string): string | undefined {
  const [, prefix, group = "", version] = path.split("/");
  if (prefix === "api") return CORE_VERSION;
  return prefix === "apis" && group !== "" ? `${group}/${version}` : undefined;
}
