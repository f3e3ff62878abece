/**
 * The service proxy of a node: keeps tables of nftables up to date with services and their
 * endpoints.
 *
 *     informers → changed services → frontends → one transaction of nft, the next one when it has ended
 */

import type { Node } from "../api/core/node/schema.ts";
import { serviceKind } from "../api/core/service/kind.ts";
import type { Service } from "../api/core/service/schema.ts";
import { endpointSliceKind } from "../api/discovery/endpoint-slice/kind.ts";
import { type EndpointSlice, TRIGGER_TIME } from "../api/discovery/endpoint-slice/schema.ts";
import { serviceCIDRKind } from "../api/networking/service-cidr/kind.ts";
import type { Informer } from "../client/informer/informer.ts";
import type { SharedInformers } from "../client/informer/shared-informers.ts";
import { runInSlices } from "../std/async/steps.ts";
import { TimeSlice } from "../std/async/time-slice.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import { type IpFamily, parseCidr } from "../std/net/ip.ts";
import type { Nft } from "../std/nftables/nft.ts";
import { nftFamily, removeTable, tablePrefix } from "../std/nftables/table.ts";
import { Backoff } from "../std/time/backoff.ts";
import type { Clock } from "../std/time/clock.ts";
import { deleteStaleFlows, findChangedTargets } from "./conntrack.ts";
import { type ProxySlice, readSlice } from "./endpoints.ts";
import {
  computeFrontendsInSteps,
  countEndpoints,
  countUnusedAddresses,
  endpointsMax,
  type Frontend,
  isProxied,
  type NodeContext,
  type ServiceFrontends,
} from "./frontends.ts";
import { HealthChecks } from "./health-checks.ts";
import { type AffinityClient, parseAffinityClients } from "./nftables/affinity-clients.ts";
import type { TableOptions } from "./nftables/base-rules.ts";
import { ServiceTable } from "./nftables/service-table.ts";
import type { ProxyMetrics } from "./proxy-metrics.ts";

/** What the proxy uses of its host. */
export interface ProxyHost {
  readonly nft: Nft;
  /** The program `conntrack`; undefined if it is not installed. */
  readonly conntrack?: string | undefined;
  /** Where programs listen, see `readListeningPorts`: load balancers do not take these ports away. */
  readonly listeningPorts: () => Promise<ReadonlySet<string>>;
}

export interface ServiceProxyOptions extends ProxyHost {
  readonly nodeName: string;
  /** The name of the tables of nftables; others are not changed. */
  readonly table: string;
  readonly clusterCidrs: readonly string[];
  /** Besides those of the cluster's ServiceCIDRs. */
  readonly serviceCidrs: readonly string[];
  /** Has this node's object. */
  readonly nodes: Informer<Node>;
  readonly informers: SharedInformers;
  readonly metrics?: ProxyMetrics | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Called for what an operator should see, such as a port in use. */
  readonly onProblem: (service: Service, reason: string, message: string) => void;
}

export interface ServiceProxy {
  /** Resolves when the rules of all services are in the kernel for the first time. */
  readonly ready: Promise<void>;
  /** Whether the last transaction succeeded. */
  readonly isHealthy: boolean;
  /** When the rules of each family were last written, in milliseconds since 1970. */
  readonly lastUpdated: ReadonlyMap<IpFamily, number>;
  /** Whether load balancers may send new connections to the node: it is not about to be deleted. */
  readonly isNodeEligible: boolean;
  /** Idempotent. */
  close(options: { readonly removeRules: boolean }): Promise<void>;
}

/** Delays after a transaction that failed. */
const BACKOFF = { initialMs: 200, maxMs: 30_000, jitter: 0.1 };
/** Changes that follow one another within this time are one transaction. */
const BATCH_MS = 5;
/** How often the existence of the tables is checked. */
const CHECK_MS = 60_000;
const ZONE = "topology.kubernetes.io/zone";
/** The cluster autoscaler's taint of nodes that it deletes next. */
const SCALE_DOWN_TAINT = "ToBeDeletedByClusterAutoscaler";
const FAMILIES = ["IPv4", "IPv6"] as const;

export function startServiceProxy(options: ServiceProxyOptions): ServiceProxy {
  return new RunningProxy(options);
}

/** Text that removes the rules of a proxy with the table. */
export function removeProxyRules(table: string): readonly string[] {
  return FAMILIES.map((family) => removeTable({ family, table }));
}

interface FamilyState {
  readonly family: IpFamily;
  table: ServiceTable;
  /** Whether the kernel has the table as it was after the last transaction. */
  isInstalled: boolean;
}

class RunningProxy implements ServiceProxy {
  readonly ready: Promise<void>;
  readonly lastUpdated = new Map<IpFamily, number>();
  readonly #options: ServiceProxyOptions;
  readonly #stop = new AbortController();
  readonly #resources = new AsyncDisposableStack();
  readonly #checks: HealthChecks;
  readonly #services = new Map<string, Service>();
  readonly #slices = new Map<string, Map<string, ProxySlice>>();
  readonly #cidrs = new Map<string, readonly string[]>();
  /** UDP frontends with flows that may be stale, until a transaction succeeds. */
  #changedTargets = new Map<string, ReadonlySet<string>>();
  /** What the rules have, by family and service. */
  readonly #frontends = new Map<string, ServiceFrontends>();
  /** The sums of those in `#frontends`. */
  readonly #withoutLocal = { IPv4: { internal: 0, external: 0 }, IPv6: { internal: 0, external: 0 } };
  readonly #families: FamilyState[];
  readonly #running: Promise<void>;
  #node: NodeContext;
  #dirty = new Set<string>();
  #rebuilds = true;
  #healthy = false;
  #nodeEligible = true;
  #wake: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ServiceProxyOptions) {
    this.#options = options;
    this.#node = { name: options.nodeName, zone: undefined, addresses: [] };
    this.#checks = this.#resources.use(
      new HealthChecks(
        options.log,
        () => this.#healthy,
        ({ namespace, name, port }, error) => {
          const service = this.#services.get(`${namespace}/${name}`);
          const message = `node ${options.nodeName} cannot serve the health check at port ${port}: ${error.message}`;
          if (service !== undefined) options.onProblem(service, "FailedToStartServiceHealthcheck", message);
        },
      ),
    );
    this.#families = FAMILIES.map((family) => ({ family, table: this.#newTable(family), isInstalled: false }));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ready = promise;
    promise.catch(() => {});
    this.#running = this.#run(resolve).finally(() => reject(new Error("The service proxy stopped")));
  }

  get isHealthy(): boolean {
    return this.#healthy;
  }

  get isNodeEligible(): boolean {
    return this.#nodeEligible;
  }

  close({ removeRules }: { readonly removeRules: boolean }): Promise<void> {
    this.#closing ??= (async () => {
      this.#stop.abort(new DOMException("The service proxy is closed", "AbortError"));
      await this.#running;
      await this.#resources.disposeAsync();
      if (!removeRules) return;
      for (const { family, isInstalled } of this.#families) {
        if (!isInstalled) continue;
        await this.#options.nft.apply(removeTable({ family, table: this.#options.table })).catch((error: unknown) => {
          this.#options.log.error("Cannot remove the rules of the service proxy", error);
        });
      }
    })();
    return this.#closing;
  }

  async #run(onReady: () => void): Promise<void> {
    const { clock, log, random } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(BACKOFF, random);
    try {
      await this.#subscribe(signal);
      while (!signal.aborted) {
        if (!this.#rebuilds && this.#dirty.size === 0) await this.#changed(signal);
        await clock.sleep(BATCH_MS, signal);
        try {
          if (!this.#rebuilds && this.#dirty.size === 0) await this.#checkTables();
          else await this.#sync();
          this.#healthy = true;
          backoff.reset();
          onReady();
        } catch (error) {
          this.#healthy = false;
          // What the kernel has is unknown: the next transaction replaces all of it.
          this.#rebuilds = true;
          log.error("Failed to update nftables; retrying", error);
          await clock.sleep(backoff.next(), signal);
        }
      }
    } catch (error) {
      // The informers are closed first when the program stops while it starts.
      const isStopped = error instanceof DOMException && error.name === "AbortError";
      if (!signal.aborted && !isStopped) throw error;
    }
  }

  /** Resolves when all services and endpoints are known. */
  async #subscribe(signal: AbortSignal): Promise<void> {
    const { informers, nodes } = this.#options;
    const services = informers.of(serviceKind);
    const slices = informers.of(endpointSliceKind);
    const cidrs = informers.of(serviceCIDRKind);
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    await Promise.race([Promise.all([services.synced, slices.synced, nodes.synced]), aborted]);
    this.#resources.defer(
      services.subscribe({
        put: (service) => this.#setService(service),
        delete: ({ metadata }) => {
          const key = `${metadata?.namespace}/${metadata?.name}`;
          if (this.#services.delete(key)) this.#options.metrics?.recordServiceChange();
          this.#touch(key);
        },
      }),
    );
    this.#resources.defer(
      slices.subscribe({
        put: (slice, before) => {
          this.#setSlice(slice, before);
          this.#options.metrics?.recordEndpointChange(triggerTime(slice), familyOf(slice));
        },
        delete: (slice) => {
          this.#setSlice(undefined, slice);
          this.#options.metrics?.recordEndpointChange(undefined, familyOf(slice));
        },
      }),
    );
    this.#resources.defer(nodes.subscribe({ put: (node) => this.#setNode(node) }));
    this.#resources.defer(
      cidrs.subscribe({
        put: ({ metadata, spec }) => this.#setCidrs(metadata?.name ?? "", spec?.cidrs ?? []),
        delete: ({ metadata }) => this.#setCidrs(metadata?.name ?? "", []),
      }),
    );
  }

  #setService(service: Service): void {
    const key = `${service.metadata?.namespace}/${service.metadata?.name}`;
    const known = this.#services.has(key);
    if (isProxied(service)) this.#services.set(key, service);
    else if (known) this.#services.delete(key);
    else return;
    this.#options.metrics?.recordServiceChange();
    this.#touch(key);
  }

  #setSlice(slice: EndpointSlice | undefined, before: EndpointSlice | undefined): void {
    for (const [object, isGone] of [[before, true] as const, [slice, false] as const]) {
      const read = object === undefined ? undefined : readSlice(object);
      if (read === undefined) continue;
      const slices = this.#slices.get(read.service) ?? new Map<string, ProxySlice>();
      const name = object?.metadata?.name ?? "";
      if (isGone) slices.delete(name);
      else slices.set(name, read);
      if (slices.size === 0) this.#slices.delete(read.service);
      else this.#slices.set(read.service, slices);
      if (this.#services.has(read.service)) this.#touch(read.service);
    }
  }

  #setNode({ metadata, spec, status }: Node): void {
    const isDrained = (spec?.taints ?? []).some(({ key }) => key === SCALE_DOWN_TAINT);
    this.#nodeEligible = metadata?.deletionTimestamp === undefined && !isDrained;
    const internal = (status?.addresses ?? [])
      .filter(({ type }) => type === "InternalIP")
      .map(({ address }) => address);
    const addresses = FAMILIES.flatMap((family) => {
      return internal.find((address) => address.includes(":") === (family === "IPv6")) ?? [];
    });
    const zone = metadata?.labels?.[ZONE];
    if (zone === this.#node.zone && addresses.join() === this.#node.addresses.join()) return;
    this.#node = { ...this.#node, zone, addresses };
    for (const key of this.#services.keys()) this.#dirty.add(key);
    this.#wake?.();
  }

  #setCidrs(name: string, cidrs: readonly string[]): void {
    if ((this.#cidrs.get(name) ?? []).join() === cidrs.join()) return;
    if (cidrs.length === 0) this.#cidrs.delete(name);
    else this.#cidrs.set(name, cidrs);
    this.#rebuilds = true;
    this.#wake?.();
  }

  #touch(key: string): void {
    this.#dirty.add(key);
    this.#wake?.();
  }

  /** Resolves when something changes, and when the tables are to be checked. */
  async #changed(signal: AbortSignal): Promise<void> {
    const changed = new AbortController();
    this.#wake = () => changed.abort();
    await this.#options.clock.sleep(CHECK_MS, AbortSignal.any([signal, changed.signal])).catch(() => {});
    this.#wake = undefined;
    signal.throwIfAborted();
  }

  #newTable(family: IpFamily): ServiceTable {
    const { table, clusterCidrs, serviceCidrs } = this.#options;
    const isOf = (cidr: string): boolean => parseCidr(cidr)?.family === family;
    const options: TableOptions = {
      family,
      table,
      clusterCidrs: clusterCidrs.filter(isOf),
      serviceCidrs: [...new Set([...serviceCidrs, ...[...this.#cidrs.values()].flat()])].filter(isOf),
    };
    return new ServiceTable(options);
  }

  async #sync(): Promise<void> {
    const { clock, metrics } = this.#options;
    const rebuilds = this.#rebuilds;
    const keys = rebuilds ? new Set([...this.#services.keys(), ...this.#known()]) : this.#dirty;
    this.#rebuilds = false;
    this.#dirty = new Set();
    metrics?.recordSyncStart();
    for (const state of this.#families) await this.#measureSync(state, keys, rebuilds);
    this.#checks.set(this.#healthChecks());
    metrics?.recordSync();
    const { conntrack, log } = this.#options;
    const targets = this.#changedTargets;
    this.#changedTargets = new Map();
    if (conntrack === undefined || targets.size === 0) return;
    for (const family of FAMILIES) {
      const began = clock.monotonic();
      try {
        const count = await deleteStaleFlows(conntrack, family, targets);
        if (count !== undefined) metrics?.recordDeletedFlows(family, (clock.monotonic() - began) / 1000, count);
      } catch (error) {
        log.warn("Cannot delete UDP flows to endpoints that are gone", { error: String(error) });
      }
    }
  }

  async #measureSync(state: FamilyState, keys: Iterable<string>, rebuilds: boolean): Promise<void> {
    const { clock, metrics } = this.#options;
    const { family } = state;
    const began = clock.monotonic();
    try {
      await this.#syncFamily(state, keys, rebuilds);
    } catch (error) {
      metrics?.recordFamilyFailure(family);
      throw error;
    }
    metrics?.recordFamilySync(family, (clock.monotonic() - began) / 1000, rebuilds, this.#withoutLocal[family]);
  }

  /** The services with rules, which may be gone. */
  #known(): readonly string[] {
    return [...this.#frontends.keys()].map((key) => key.slice(key.indexOf(" ") + 1));
  }

  async #syncFamily(state: FamilyState, keys: Iterable<string>, rebuilds: boolean): Promise<void> {
    const { family } = state;
    if (rebuilds) state.table = this.#newTable(family);
    const changes = new Map<string, ServiceFrontends | undefined>();
    const usedPorts = await this.#usedPorts(keys);
    // A service may have thousands of ports, and many services may change at once.
    const turn = new TimeSlice();
    for (const key of keys) {
      if (turn.isOver) await turn.end();
      const service = this.#services.get(key);
      const slices = [...(this.#slices.get(key)?.values() ?? [])];
      const all = service && (await runInSlices(computeFrontendsInSteps(service, slices, family, this.#node), turn));
      if (turn.isOver) await turn.end();
      if (service !== undefined) this.#reportUnusedEndpoints(service, slices, family);
      const computed = service && all && this.#withoutUsedPorts(service, all, usedPorts);
      const next = computed !== undefined && computed.clusterIps.length > 0 ? computed : undefined;
      const known = this.#frontends.get(`${family} ${key}`);
      for (const [frontend, endpoints] of findChangedTargets(known, next))
        this.#changedTargets.set(frontend, endpoints);
      for (const policy of ["internal", "external"] as const) {
        this.#withoutLocal[family][policy] += (next?.withoutLocal[policy] ?? 0) - (known?.withoutLocal[policy] ?? 0);
      }
      if (next !== undefined) this.#frontends.set(`${family} ${key}`, next);
      else this.#frontends.delete(`${family} ${key}`);
      if (next !== undefined || known !== undefined) changes.set(key, next);
    }
    const update = await runInSlices(state.table.updateInSteps(changes), turn);
    if (turn.isOver) await turn.end();
    // A host may have no IPv6: its table appears with the first service that needs it.
    const isNeeded = family === "IPv4" || state.isInstalled || state.table.size > 0;
    const replaces = rebuilds || !state.isInstalled;
    const clients = isNeeded && replaces ? await this.#readClients(state) : undefined;
    const text = isNeeded ? (replaces ? state.table.rebuild(clients) : update.text()) : "";
    if (text === "") return;
    await this.#options.nft.apply(text);
    state.isInstalled = true;
    this.lastUpdated.set(family, this.#options.clock.now());
    this.#reportConflicts(state.table, changes);
  }

  /** The clients that the kernel's table has, which is replaced: they stay with their endpoints. */
  async #readClients({ family, table }: FamilyState): Promise<ReadonlyMap<string, readonly AffinityClient[]>> {
    const { nft, log, table: name } = this.#options;
    if (nft.listSets === undefined || table.affinitySets.length === 0) return new Map();
    try {
      return parseAffinityClients(await nft.listSets(nftFamily(family)), name);
    } catch (error) {
      log.warn("Cannot read the clients of services with session affinity", { error: String(error) });
      return new Map();
    }
  }

  /** Empty unless one of the services is a load balancer at the node's own address. */
  async #usedPorts(keys: Iterable<string>): Promise<ReadonlySet<string>> {
    for (const key of keys) {
      const ingress = this.#services.get(key)?.status?.loadBalancer?.ingress ?? [];
      if (ingress.some(({ ip = "" }) => this.#node.addresses.includes(ip))) return await this.#options.listeningPorts();
    }
    return new Set();
  }

  /** Leaves out the ports of a load balancer at which a program of this host listens, such as that of SSH. */
  #withoutUsedPorts(service: Service, all: ServiceFrontends, used: ReadonlySet<string>): ServiceFrontends {
    const ingress = new Set((service.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip));
    const ports = new Set((service.spec?.ports ?? []).map(({ port }) => port));
    const isTaken = ({ address, protocol, port }: Frontend): boolean =>
      (used.has(`${protocol} ${port} *`) || used.has(`${protocol} ${port} ${address}`)) &&
      ports.has(port) &&
      ingress.has(address) &&
      this.#node.addresses.includes(address);
    const taken = all.frontends.filter(isTaken);
    for (const { protocol, port } of taken) {
      const message = `A program of node ${this.#node.name} listens at port ${port}/${protocol.toUpperCase()}`;
      this.#options.onProblem(service, "PortConflict", message);
    }
    return taken.length === 0 ? all : { ...all, frontends: all.frontends.filter((frontend) => !isTaken(frontend)) };
  }

  #reportUnusedEndpoints(service: Service, slices: readonly ProxySlice[], family: IpFamily): void {
    const unused = countUnusedAddresses(service, family);
    if (unused > 0) {
      const text = `The proxy does not use ${unused} ${family} addresses of the service, as it has too many`;
      this.#options.onProblem(service, "TooManyAddresses", text);
    }
    const [count, max] = [countEndpoints(slices, family), endpointsMax(service)];
    if (count <= max) return;
    const message = `The service has ${count} ${family} endpoints, of which the proxy uses ${max}, as it has many ports`;
    this.#options.onProblem(service, "TooManyEndpoints", message);
  }

  #reportConflicts(table: ServiceTable, changes: ReadonlyMap<string, unknown>): void {
    for (const { frontend, owner, others } of table.conflicts()) {
      for (const key of others.filter((other) => changes.has(other))) {
        const service = this.#services.get(key);
        const message = `Service ${owner} already uses ${frontend.replaceAll(" . ", " ")}`;
        if (service !== undefined) this.#options.onProblem(service, "AddressConflict", message);
      }
    }
  }

  #healthChecks() {
    return [...this.#services].flatMap(([key, { metadata, spec }]) => {
      const port = spec?.healthCheckNodePort ?? 0;
      if (port === 0 || spec?.externalTrafficPolicy !== "Local") return [];
      const endpoints = new Set(
        [...(this.#slices.get(key)?.values() ?? [])].flatMap((slice) =>
          slice.endpoints
            .filter(({ nodeName, ready }) => ready && nodeName === this.#node.name)
            .map((one) => one.address),
        ),
      );
      const { namespace = "", name = "" } = metadata ?? {};
      return [{ namespace, name, port, endpoints: endpoints.size }];
    });
  }

  /** Other programs may flush all rules of the host. */
  async #checkTables(): Promise<void> {
    const { nft, table } = this.#options;
    for (const { family, isInstalled } of this.#families) {
      if (isInstalled) await nft.apply(`list chain ${tablePrefix({ family, table })} services\n`);
    }
  }
}

/** Undefined for a slice of names. */
function familyOf({ addressType }: EndpointSlice): IpFamily | undefined {
  return FAMILIES.find((family) => family === addressType);
}

/** When the pod or service changed that the slice follows, in milliseconds since 1970; undefined when it is unknown. */
function triggerTime({ metadata }: EndpointSlice): number | undefined {
  const at = Date.parse(metadata?.annotations?.[TRIGGER_TIME] ?? "");
  return Number.isNaN(at) ? undefined : at;
}
