/**
 * The discovery of extension servers, for the aggregated documents of this server: requested from each service when it
 * becomes available, and every minute.
 */
import type { UserInfo } from "../../auth/user.ts";
import { parseJsonInSteps } from "../../schema/json/parse.ts";
import { countValues } from "../../schema/value/check-values.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { runInSlices } from "../../std/async/steps.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { convertResourceList, type ResourceDiscovery, readGroupDiscoveryList } from "./discovery-entry.ts";
import type { ExtensionResponse } from "./extension-request.ts";
import { type ExtensionApi, serviceKey } from "./registered-api.ts";

export interface DiscoveryManagerDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** The APIs of a service. */
  readonly apisOf: (key: string) => readonly ExtensionApi[];
  readonly request: (api: ExtensionApi, request: DocumentRequest, signal: AbortSignal) => Promise<ExtensionResponse>;
  readonly onChange: () => void;
}

export interface DocumentRequest {
  readonly path: string;
  readonly user: UserInfo;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly bytesMax: number;
}

/** The discovery of a group version; `Stale` after a failed request. */
export interface DiscoveredVersion {
  readonly resources: readonly ResourceDiscovery[];
  readonly freshness: "Current" | "Stale";
}

/** The last document of a service, by `group/version`. */
interface CachedDiscovery {
  readonly versions: ReadonlyMap<string, readonly ResourceDiscovery[]>;
  readonly etag: string | undefined;
}

const REFRESH_MS = 60_000;
const TIMEOUT_MS = 5000;
/** Longer documents are refused: they would be held in memory and sent to every client. */
const DOCUMENT_BYTES_MAX = 2 * 2 ** 20;
const RESOURCES_MAX = 2000;
/** Of all services; further ones are left out. */
const CACHED_VALUES_MAX = 200_000;
const BACKOFF = { initialMs: 1000, maxMs: 60_000, jitter: 0.2 };
const SERVICES_AT_ONCE = 2;
const USER: UserInfo = { name: "system:kube-aggregator", uid: "", groups: [], extra: {} };
const AGGREGATED = ["v2", "v2beta1"]
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(",");

export class DiscoveryManager implements AsyncDisposable {
  readonly #deps: DiscoveryManagerDeps;
  readonly #queue: WorkQueue;
  readonly #services = new Map<string, CachedDiscovery | undefined>();
  /** By the name of the API service. */
  readonly #discovered = new Map<string, DiscoveredVersion>();
  /** The values in each document that is cached, by its service or API service. */
  readonly #valueCounts = new Map<string, number>();
  #refresh: Timer | undefined;

  constructor(deps: DiscoveryManagerDeps) {
    this.#deps = deps;
    const { clock, random, log } = deps;
    this.#queue = new WorkQueue({
      clock,
      random,
      concurrency: SERVICES_AT_ONCE,
      backoff: BACKOFF,
      work: (key, signal) => this.#sync(key, signal),
      onError: (service, error) =>
        log.v(2)?.info("Cannot read the discovery of a service", { service, error: `${error}` }),
    });
  }

  /** Undefined before the first request has ended. */
  find(name: string): DiscoveredVersion | undefined {
    return this.#discovered.get(name);
  }

  /** Requests the discovery of the API's service. */
  update(api: ExtensionApi): void {
    const key = serviceKey(api.service);
    if (!this.#services.has(key)) this.#services.set(key, undefined);
    this.#refresh ??= this.#startRefresh();
    this.#queue.add(key);
  }

  forget(api: ExtensionApi): void {
    this.#discovered.delete(api.name);
    this.#valueCounts.delete(api.name);
    const key = serviceKey(api.service);
    if (this.#deps.apisOf(key).length > 0) return;
    this.#queue.forget(key);
    this.#services.delete(key);
    this.#valueCounts.delete(key);
    if (this.#services.size > 0) return;
    this.#refresh?.cancel();
    this.#refresh = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#refresh?.cancel();
    await this.#queue[Symbol.asyncDispose]();
  }

  #startRefresh(): Timer {
    return this.#deps.clock.timer(REFRESH_MS, () => {
      for (const key of this.#services.keys()) this.#queue.add(key);
      this.#refresh = this.#startRefresh();
    });
  }

  async #sync(key: string, signal: AbortSignal): Promise<void> {
    const apis = this.#deps.apisOf(key);
    const available = apis.filter(({ isAvailable }) => isAvailable);
    for (const api of apis) if (!api.isAvailable) this.#markStale(api);
    const [first] = available;
    if (first === undefined) return;
    let cached: CachedDiscovery | undefined;
    try {
      cached = await this.#requestAggregated(key, first, signal);
    } catch (error) {
      for (const api of available) this.#markStale(api);
      throw error;
    }
    // The service may have been removed while its document was read.
    if (!this.#services.has(key)) return;
    this.#services.set(key, cached);
    for (const api of available) await this.#assign(api, cached, signal);
  }

  async #assign(api: ExtensionApi, cached: CachedDiscovery | undefined, signal: AbortSignal): Promise<void> {
    try {
      const resources =
        cached === undefined
          ? await this.#requestResourceList(api, signal)
          : (cached.versions.get(`${api.group}/${api.version}`) ?? []);
      this.#set(api, { resources, freshness: "Current" });
    } catch (error) {
      this.#markStale(api);
      throw error;
    }
  }

  /** Undefined when the server has no aggregated discovery. */
  async #requestAggregated(key: string, api: ExtensionApi, signal: AbortSignal): Promise<CachedDiscovery | undefined> {
    const previous = this.#services.get(key);
    const headers = {
      accept: AGGREGATED,
      ...(previous?.etag === undefined ? {} : { "if-none-match": previous.etag }),
    };
    const response = await this.#request(api, "/apis", headers, signal);
    if (response.status === 304 && previous !== undefined) return previous;
    const type = response.headers["content-type"] ?? "";
    if (response.status !== 200 || !/as=APIGroupDiscoveryList/.test(type)) return undefined;
    const versions = readGroupDiscoveryList(await parse(response.body));
    for (const resources of versions.values()) limitResources(resources);
    this.#limitValues(key, [...versions.values()]);
    return { versions, etag: response.headers.etag };
  }

  async #requestResourceList(api: ExtensionApi, signal: AbortSignal): Promise<readonly ResourceDiscovery[]> {
    const path = `/apis/${api.group}/${api.version}`;
    const response = await this.#request(api, path, { accept: "application/json" }, signal);
    if (response.status !== 200) throw new Error(`failed to download discovery for ${path}: ${response.status}`);
    const resources = limitResources(convertResourceList(await parse(response.body)));
    this.#limitValues(api.name, resources);
    return resources;
  }

  async #request(
    api: ExtensionApi,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ExtensionResponse> {
    const limits = { timeoutMs: TIMEOUT_MS, bytesMax: DOCUMENT_BYTES_MAX };
    return await this.#deps.request(api, { path, user: USER, headers, ...limits }, signal);
  }

  #limitValues(key: string, document: unknown): void {
    const values = countValues(document, CACHED_VALUES_MAX);
    let total = values;
    for (const [other, count] of this.#valueCounts) if (other !== key) total += count;
    if (total > CACHED_VALUES_MAX) {
      throw new Error(`the discovery documents of extension servers have more than ${CACHED_VALUES_MAX} values`);
    }
    this.#valueCounts.set(key, values);
  }

  #markStale(api: ExtensionApi): void {
    const { resources = [] } = this.#discovered.get(api.name) ?? {};
    this.#set(api, { resources, freshness: "Stale" });
  }

  #set({ name, service }: ExtensionApi, next: DiscoveredVersion): void {
    if (!this.#deps.apisOf(serviceKey(service)).some((api) => api.name === name)) return;
    const previous = this.#discovered.get(name);
    if (previous?.freshness === next.freshness && isSame(previous.resources, next.resources)) return;
    this.#discovered.set(name, next);
    this.#deps.onChange();
  }
}

function isSame(a: readonly ResourceDiscovery[], b: readonly ResourceDiscovery[]): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function limitResources(resources: readonly ResourceDiscovery[]): readonly ResourceDiscovery[] {
  if (resources.length <= RESOURCES_MAX) return resources;
  throw new Error(`a group version has ${resources.length} resources; at most ${RESOURCES_MAX} are read`);
}

async function parse(body: Buffer): Promise<unknown> {
  return (await runInSlices(parseJsonInSteps(body, valuesMax))).value;
}
