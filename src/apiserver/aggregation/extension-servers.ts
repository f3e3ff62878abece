/** The extension servers of the cluster: their requests, availability, discovery and OpenAPI documents. */
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Connector } from "../../client/transport/connector.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bytesResponse } from "../../http/respond.ts";
import type { Registries } from "../../registry/registries.ts";
import { runInSlices } from "../../std/async/steps.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { OnTermination } from "../filters/request-deadline.ts";
import type { RequestContext } from "../request/request-context.ts";
import { checkAvailability } from "./availability.ts";
import { AvailabilityController } from "./availability-controller.ts";
import { ExtensionConnections } from "./connections.ts";
import { type DiscoveredVersion, DiscoveryManager, type DocumentRequest } from "./discovery-manager.ts";
import { ExtensionProxy } from "./extension-proxy.ts";
import { type ExtensionResponse, getFromExtension } from "./extension-request.ts";
import type { AggregatorMetrics } from "./metrics.ts";
import { OpenApiAggregator } from "./openapi-aggregator.ts";
import { compareVersionPriority, type ExtensionApi, serviceKey } from "./registered-api.ts";
import { ServiceResolver } from "./service-resolver.ts";

export interface ExtensionServersDeps {
  readonly registries: Registries;
  readonly log: Logger;
  readonly metrics: AggregatorMetrics;
  readonly onTermination: OnTermination;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
  readonly clientCertificate: () => KeyPair | undefined;
  /** Returns how to connect to extension servers; undefined: directly. */
  readonly connector: () => Connector | undefined;
  /** `--enable-aggregator-routing` */
  readonly routesToEndpoints: boolean;
  /** `--aggregator-reject-forwarding-redirect` */
  readonly rejectsRedirects: boolean;
  /** The gate RemoteRequestHeaderUID. */
  readonly sendsUid: boolean;
  /** Called when the discovery of an extension server has changed. */
  readonly onDiscovery: () => void;
}

export class ExtensionServers implements AsyncDisposable {
  readonly #deps: ExtensionServersDeps;
  /** By the name of the API service. */
  readonly #apis = new Map<string, ExtensionApi>();
  readonly #resolver: ServiceResolver;
  readonly #connections: ExtensionConnections;
  readonly #proxy: ExtensionProxy;
  readonly #availability: AvailabilityController;
  readonly #discovery: DiscoveryManager;
  readonly openApi: OpenApiAggregator;

  constructor(deps: ExtensionServersDeps) {
    this.#deps = deps;
    const { registries, log, metrics, stopping: signal } = deps;
    const { clock, random } = registries.deps;
    const resolver = new ServiceResolver({
      registries,
      routesToEndpoints: deps.routesToEndpoints,
      signal,
      onChange: (namespace, name) => this.#checkService(namespace, name),
    });
    const connections = new ExtensionConnections(deps);
    this.#resolver = resolver;
    this.#connections = connections;
    this.#proxy = new ExtensionProxy({ ...deps, resolver, connections, clock });
    this.#availability = new AvailabilityController({
      registries,
      log,
      metrics,
      signal,
      find: (name) => this.#apis.get(name),
      check: (api, end) => checkAvailability(api, { resolver, connections, clock }, end),
    });
    const request = (api: ExtensionApi, document: DocumentRequest, end: AbortSignal): Promise<ExtensionResponse> =>
      this.#request(api, document, end);
    this.#discovery = new DiscoveryManager({
      clock,
      random,
      log,
      apisOf: (key) => [...this.#apis.values()].filter(({ service }) => serviceKey(service) === key),
      request,
      onChange: deps.onDiscovery,
    });
    const apis = (): readonly ExtensionApi[] =>
      [...this.#apis.values()].filter(({ group }) => group !== "").sort(comparePriority);
    this.openApi = new OpenApiAggregator({ clock, log, metrics, apis, request, signal });
  }

  /** Adds an API service or replaces its former state. */
  put(api: ExtensionApi): void {
    const previous = this.#apis.get(api.name);
    this.#apis.set(api.name, api);
    const isMoved = previous !== undefined && serviceKey(previous.service) !== serviceKey(api.service);
    if (isMoved) {
      this.#discovery.forget(previous);
      this.openApi.forget(api.name, "update");
    }
    const isSpecChanged = previous === undefined || !hasSameSpec(previous, api);
    if (isSpecChanged) this.#availability.check(api.name);
    // The documents of core kinds are below the path that is forwarded.
    const isListed = api.group !== "";
    if (isListed && (isSpecChanged || previous.isAvailable !== api.isAvailable)) this.#discovery.update(api);
  }

  delete(name: string): void {
    const api = this.#apis.get(name);
    if (api === undefined) return;
    this.#apis.delete(name);
    this.#availability.forget(name);
    this.#discovery.forget(api);
    this.openApi.forget(name, "delete");
    this.#connections.forget(name);
    const isUnused = [...this.#apis.values()].every(
      ({ service }) => service.name !== api.service.name || service.namespace !== api.service.namespace,
    );
    if (isUnused) this.#resolver.forget(api.service);
  }

  /** Sets the condition of an API service that has no extension server any more. */
  async setLocal(name: string): Promise<void> {
    await this.#availability.setLocal(name);
  }

  discoveryOf(name: string): DiscoveredVersion | undefined {
    return this.#discovery.find(name);
  }

  async forward(api: ExtensionApi, context: RequestContext): Promise<HttpResponse> {
    return await this.#proxy.forward(api, context);
  }

  /** The OpenAPI v3 document of the API: that of its server, or one converted from v2. */
  async openApiV3(api: ExtensionApi, context: RequestContext): Promise<HttpResponse> {
    const converted = this.openApi.convertedV3(api);
    if (converted === undefined) return await this.forward(api, context);
    const { encodeJson } = await import("../openapi/json-steps.ts");
    const body = await runInSlices(encodeJson(await runInSlices(converted), 3));
    return bytesResponse(200, "application/json", body, { vary: "Accept-Encoding, Accept" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#availability[Symbol.asyncDispose](), this.#discovery[Symbol.asyncDispose]()]);
    this.#connections[Symbol.dispose]();
  }

  #checkService(namespace: string, name: string): void {
    for (const api of this.#apis.values()) {
      if (api.service.name === name && api.service.namespace === namespace) this.#availability.check(api.name);
    }
  }

  async #request(api: ExtensionApi, document: DocumentRequest, signal: AbortSignal): Promise<ExtensionResponse> {
    const address = await this.#resolver.resolve(api.service);
    const agent = this.#connections.agentFor(api);
    const { clock } = this.#deps.registries.deps;
    return await getFromExtension({ ...document, address, agent, signal }, clock);
  }
}

function comparePriority(a: ExtensionApi, b: ExtensionApi): number {
  return (
    b.groupPriority - a.groupPriority || (a.group < b.group ? -1 : a.group > b.group ? 1 : compareVersionPriority(a, b))
  );
}

function hasSameSpec(a: ExtensionApi, b: ExtensionApi): boolean {
  return (
    serviceKey(a.service) === serviceKey(b.service) &&
    a.caBundle === b.caBundle &&
    a.insecureSkipTlsVerify === b.insecureSkipTlsVerify &&
    a.groupPriority === b.groupPriority &&
    a.versionPriority === b.versionPriority
  );
}
