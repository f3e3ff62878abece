/** Allocates devices of device plugins to containers. */
import { join } from "node:path";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { isExtendedResource } from "../../../api/core/resources/names.ts";
import { decodeProtobuf } from "../../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../../schema/protobuf/encode.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { CounterFamily, HistogramFamily, MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Plugin, PluginHandler } from "../../plugins/plugin-watcher.ts";
import { appContainers, initContainers, isSidecar, podUid } from "../../pods/pod-fields.ts";
import { parseUnits } from "../../pods/resources/quantities.ts";
import type { RunningPod } from "../cpu/cpu-manager.ts";
import type { AffinityStore, HintProvider, ResourceHints } from "../topology/topology-hint.ts";
import { type DeviceEntry, readDeviceCheckpoint, writeDeviceCheckpoint } from "./device-checkpoint.ts";
import { DevicePlugin } from "./device-plugin.ts";
import { DeviceResource } from "./device-resource.ts";
import { type ContainerAllocateResponse, containerAllocateResponse, type RegisterRequest } from "./messages.ts";

export interface DeviceManagerOptions {
  /** Contains the sockets of the plugins and the checkpoint. */
  readonly directory: string;
  /** In ascending order. */
  readonly numaNodes: readonly number[];
  /** Undefined until all sources of pods have been read: nothing is released before. */
  readonly activePods: () => readonly RunningPod[] | undefined;
  /** The pods of all workers, also before all sources have been read. */
  readonly runningPods: () => readonly RunningPod[];
  /** The number of devices has changed. */
  readonly onChange: () => void;
  readonly registry: MetricRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface DeviceCapacity {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
}

const CHECKPOINT = "kubelet_internal_checkpoint";
const VERSION = "v1beta1";
/** A resource stays for that long after its plugin is gone. */
const STOPPED_RESOURCE_MS = 5 * 60_000;
/** Further resources are refused. */
const RESOURCES_MAX = 256;

export class DeviceManager implements HintProvider, PluginHandler, AsyncDisposable {
  readonly #options: DeviceManagerOptions;
  readonly #affinities: AffinityStore;
  readonly #registrations: CounterFamily;
  readonly #allocationSeconds: HistogramFamily;
  readonly #resources = new Map<string, DeviceResource>();
  #entries: DeviceEntry[] = [];
  /** Devices of init containers, by resource, which later containers of the same pod use. */
  #reusable: { readonly uid: string; readonly ids: Map<string, Set<string>> } = { uid: "", ids: new Map() };
  /** The pod whose admission is not finished: it may not be active yet. */
  #admitting = "";
  /** The last write of the checkpoint. */
  #written: Promise<void> = Promise.resolve();

  private constructor(options: DeviceManagerOptions, affinities: AffinityStore) {
    this.#options = options;
    this.#affinities = affinities;
    this.#registrations = options.registry.counter({
      name: "kubelet_device_plugin_registration_total",
      help: "Cumulative number of device plugin registrations. Broken down by resource name.",
      stability: "ALPHA",
      labels: ["resource_name"],
    });
    this.#allocationSeconds = options.registry.histogram(
      {
        name: "kubelet_device_plugin_alloc_duration_seconds",
        help: "Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.",
        stability: "ALPHA",
        labels: ["resource_name"],
      },
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    );
  }

  /** Reads the checkpoint; a damaged one is ignored, as by Kubernetes: plugins register again. */
  static async open(options: DeviceManagerOptions, affinities: AffinityStore): Promise<DeviceManager> {
    const manager = new DeviceManager(options, affinities);
    const path = join(options.directory, CHECKPOINT);
    try {
      const checkpoint = await readDeviceCheckpoint(path);
      manager.#entries = [...(checkpoint?.entries ?? [])];
      const now = options.clock.monotonic();
      // Resources have no devices until their plugin registers.
      for (const name of Object.keys(checkpoint?.registered ?? {}))
        manager.#resources.set(name, new DeviceResource(now));
    } catch (error) {
      options.log.warn("Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date", {
        path,
        error: error instanceof Error ? error.message : String(error),
      });
    }
    return manager;
  }

  /** Registration by a call of the agent's socket. Rejects with Kubernetes' text. */
  async registerByCall({ version = "", endpoint = "", resourceName = "" }: RegisterRequest): Promise<void> {
    this.#registrations.with(resourceName).inc();
    if (version !== VERSION) {
      throw new Error(
        `requested API version "${version}" is not supported by kubelet. Supported version is ["${VERSION}"]`,
      );
    }
    if (endpoint.includes("/")) throw new Error(`the endpoint ${JSON.stringify(endpoint)} is no name of a socket`);
    await this.#connect(resourceName, join(this.#options.directory, endpoint));
  }

  validate({ name, versions }: Plugin): void {
    if (!versions.includes(VERSION)) {
      const supported = `[${versions.join(" ")}]`;
      throw new Error(`manager version, ${VERSION}, is not among plugin supported versions ${supported}`);
    }
    if (!isExtendedResource(name)) {
      throw new Error(`invalid name of device plugin socket: the ResourceName "${name}" is invalid`);
    }
  }

  /** Registration by a socket in the directory of plugins. */
  async register({ name, endpoint }: Plugin): Promise<void> {
    await this.#connect(name, endpoint);
  }

  async deregister({ name }: Plugin): Promise<void> {
    const resource = this.#resources.get(name);
    if (resource?.plugin !== undefined) this.#disconnect(name, resource, resource.plugin);
  }

  /** Drops resources whose plugin has been gone for long. */
  getCapacity(): DeviceCapacity {
    const now = this.#options.clock.monotonic();
    const capacity: Record<string, string> = {};
    const allocatable: Record<string, string> = {};
    for (const [name, resource] of this.#resources) {
      const isGone = resource.plugin === undefined && now - resource.stoppedAt > STOPPED_RESOURCE_MS;
      capacity[name] = isGone ? "0" : String(resource.count);
      allocatable[name] = isGone ? "0" : String(resource.healthy.length);
      if (isGone) resource.update([]);
    }
    return { capacity, allocatable };
  }

  /** By resource: how many devices containers have. */
  countAllocated(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { resource } of this.#entries) counts[resource] = this.#allocated(resource).size;
    return counts;
  }

  getTopologyHints(pod: Pod, container: Container): ResourceHints {
    this.#removeStale();
    const uid = podUid(pod);
    const requests = this.#listRequests(container);
    return Object.fromEntries(
      requests.map(([name, count]) => [
        name,
        this.#makeHints(uid, name, count, this.#devicesOf(uid, container.name, name)),
      ]),
    );
  }

  getPodTopologyHints(pod: Pod): ResourceHints {
    this.#removeStale();
    const uid = podUid(pod);
    const starting = new Map<string, number>();
    const running = new Map<string, number>();
    const sidecars = new Map<string, number>();
    const add = (counts: Map<string, number>, name: string, count: number): number => {
      const sum = (counts.get(name) ?? 0) + count;
      counts.set(name, sum);
      return sum;
    };
    for (const container of initContainers(pod)) {
      for (const [name, count] of this.#listRequests(container)) {
        const most = isSidecar(container) ? add(sidecars, name, count) : (sidecars.get(name) ?? 0) + count;
        starting.set(name, Math.max(starting.get(name) ?? 0, most));
      }
    }
    for (const container of appContainers(pod)) {
      for (const [name, count] of this.#listRequests(container)) add(running, name, count);
    }
    const names = new Set([...starting.keys(), ...running.keys()]);
    return Object.fromEntries(
      [...names].map((name) => {
        const count = Math.max(starting.get(name) ?? 0, (running.get(name) ?? 0) + (sidecars.get(name) ?? 0));
        const allocated = this.#entries.filter((each) => each.uid === uid && each.resource === name).flatMap(listIds);
        return [name, this.#makeHints(uid, name, count, [...new Set(allocated)])];
      }),
    );
  }

  async allocate(pod: Pod, container: Container): Promise<void> {
    const uid = podUid(pod);
    this.#admitting = uid;
    if (this.#reusable.uid !== uid) this.#reusable = { uid, ids: new Map() };
    let isChanged = false;
    for (const [name, count] of this.#listRequests(container)) {
      isChanged = (await this.#allocateResource(pod, container, name, count)) || isChanged;
      this.#updateReusable(pod, container, name);
    }
    if (isChanged) await this.#write();
  }

  /** What the runtime sets for the devices of the container. Rejects when they cannot be allocated or prepared. */
  async prepareContainer(pod: Pod, container: Container): Promise<readonly ContainerAllocateResponse[]> {
    const uid = podUid(pod);
    const names = this.#listRequests(container)
      .filter(([, count]) => count > 0)
      .map(([name]) => name);
    for (const name of names) {
      const ids = this.#devicesOf(uid, container.name, name);
      if (ids.length === 0) await this.allocate(pod, container);
      await this.#resources.get(name)?.plugin?.preStart(this.#devicesOf(uid, container.name, name));
    }
    return this.listEntries(uid, container.name).map(({ response }) => {
      return decodeProtobuf(containerAllocateResponse, response) as ContainerAllocateResponse;
    });
  }

  /** The devices that a container has. */
  listEntries(uid: string, container: string): readonly DeviceEntry[] {
    return this.#entries.filter((each) => each.uid === uid && each.container === container);
  }

  /** By resource: all devices, by NUMA node. */
  listAllocatable(): ReadonlyMap<string, ReadonlyMap<number, readonly string[]>> {
    return new Map([...this.#resources].map(([name, resource]) => [name, resource.groupByNode(resource.healthy)]));
  }

  getHealth(resource: string, id: string): string {
    return this.#resources.get(resource)?.getHealth(id) ?? "Unknown";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { plugin } of this.#resources.values()) plugin?.[Symbol.dispose]();
    await this.#written.catch(() => undefined);
  }

  async #connect(name: string, socket: string): Promise<void> {
    const { clock, log, onChange } = this.#options;
    if (!isExtendedResource(name)) throw new Error(`the ResourceName "${name}" is invalid`);
    const resource = this.#resources.get(name) ?? new DeviceResource(clock.monotonic());
    if (!this.#resources.has(name) && this.#resources.size >= RESOURCES_MAX) {
      throw new Error(`there are ${RESOURCES_MAX} resources of device plugins already`);
    }
    let connected: DevicePlugin | undefined;
    const plugin = await DevicePlugin.connect({
      resource: name,
      socket,
      clock,
      log,
      onDevices: (devices) => {
        if (connected !== undefined && resource.plugin !== connected) return;
        resource.update(devices);
        this.#writeLater();
        onChange();
      },
      onEnd: () => {
        if (connected !== undefined) this.#disconnect(name, resource, connected);
      },
    });
    connected = plugin;
    resource.plugin?.[Symbol.dispose]();
    resource.plugin = plugin;
    this.#resources.set(name, resource);
    log.info("Registered device plugin", { resource: name, socket });
  }

  /** A plugin that has registered again stays. */
  #disconnect(name: string, resource: DeviceResource, plugin: DevicePlugin): void {
    plugin[Symbol.dispose]();
    if (resource.plugin !== plugin) return;
    resource.plugin = undefined;
    resource.stoppedAt = this.#options.clock.monotonic();
    resource.markUnhealthy();
    this.#options.log.warn("Device plugin is disconnected: its devices are unhealthy", { resource: name });
    this.#writeLater();
    this.#options.onChange();
  }

  #listRequests({ resources }: Container): readonly (readonly [string, number])[] {
    return Object.entries(resources?.limits ?? {})
      .filter(([name]) => this.#resources.has(name) || this.#entries.some((each) => each.resource === name))
      .map(([name, quantity]) => [name, parseUnits(quantity)] as const);
  }

  #makeHints(uid: string, name: string, count: number, allocated: readonly string[]): ResourceHints[string] {
    const resource = this.#resources.get(name);
    if (resource === undefined || !resource.isTopologyAware) return undefined;
    const { numaNodes } = this.#options;
    if (allocated.length > 0)
      return allocated.length === count ? resource.makeHints(numaNodes, allocated, [], count) : [];
    const available = this.#available(name, resource);
    const reusable = [...this.#getReusable(uid, name)];
    if (available.length + reusable.length < count) return [];
    return resource.makeHints(numaNodes, available, reusable, count);
  }

  /** Whether devices were allocated. */
  async #allocateResource(pod: Pod, { name: container }: Container, name: string, count: number): Promise<boolean> {
    this.#removeStale();
    const uid = podUid(pod);
    const ids = await this.#chooseDevices(uid, container, name, count);
    if (ids.length === 0) return false;
    const resource = this.#resources.get(name);
    if (resource?.plugin === undefined) throw new Error(`unknown Device Plugin ${name}`);
    const began = this.#options.clock.monotonic();
    let response: ContainerAllocateResponse;
    try {
      response = await resource.plugin.allocate(ids);
    } finally {
      this.#allocationSeconds.with(name).observe((this.#options.clock.monotonic() - began) / 1000);
    }
    const bytes = encodeProtobuf(containerAllocateResponse, response);
    this.#entries.push({ uid, container, resource: name, devices: resource.groupByNode(ids), response: bytes });
    return true;
  }

  /** Empty when the container has its devices already. */
  async #chooseDevices(uid: string, container: string, name: string, count: number): Promise<readonly string[]> {
    const had = this.#devicesOf(uid, container, name);
    if (had.length > 0 && had.length !== count) {
      const change = `from ${had.length} to ${count}`;
      throw new Error(`pod "${uid}" container "${container}" changed request for resource "${name}" ${change}`);
    }
    // An agent that restarts finds the container running: it has its devices, even if the plugin is not back yet.
    // Pods are admitted one by one, some of them after all sources have been read.
    if (this.#isRunning(uid, container)) return [];
    const resource = this.#resources.get(name);
    if (resource === undefined) throw new Error(`cannot allocate unregistered device ${name}`);
    const healthy = new Set(resource.healthy);
    if (healthy.size === 0) {
      throw new Error(`no healthy devices present; cannot allocate unhealthy devices ${name}`);
    }
    if (had.some((id) => !healthy.has(id))) {
      throw new Error(`previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${name}`);
    }
    return had.length > 0 || count === 0 ? [] : await this.#chooseFree(uid, container, resource, { name, count });
  }

  async #chooseFree(
    uid: string,
    container: string,
    resource: DeviceResource,
    { name, count }: { readonly name: string; readonly count: number },
  ): Promise<readonly string[]> {
    const chosen = new Set<string>();
    const take = (ids: Iterable<string>): boolean => {
      for (const id of ids) if (chosen.size < count) chosen.add(id);
      return chosen.size === count;
    };
    if (take(this.#getReusable(uid, name))) return [...chosen];
    const available = this.#available(name, resource);
    const needed = count - chosen.size;
    if (available.length < needed) {
      const figures = `Requested: ${needed}, Available: ${available.length}`;
      throw new Error(`requested number of devices unavailable for ${name}. ${figures}`);
    }
    const { affinity } = this.#affinities.getAffinity(uid, container);
    const { aligned, unaligned, withoutNode } = resource.sortByAffinity(available, affinity);
    const isEnough = needed < aligned.length;
    if (!isEnough && take(aligned)) return [...chosen];
    const candidates = isEnough ? aligned : available;
    const preferred = await this.#getPreferred(name, resource, [...candidates, ...chosen], [...chosen], count);
    const allowed = new Set(candidates);
    if (take(preferred.filter((id) => allowed.has(id)))) return [...chosen];
    for (const rest of isEnough ? [aligned] : [unaligned, withoutNode]) if (take(rest)) return [...chosen];
    const figures = `Requested: ${count}, Got: ${chosen.size}`;
    throw new Error(`unexpectedly allocated less resources than required. ${figures}`);
  }

  async #getPreferred(
    name: string,
    { plugin }: DeviceResource,
    available: readonly string[],
    mustInclude: readonly string[],
    count: number,
  ): Promise<readonly string[]> {
    if (plugin === undefined) throw new Error(`endpoint not found in cache for a registered resource: ${name}`);
    return await plugin.getPreferred([...new Set(available)], mustInclude, count);
  }

  #available(name: string, { healthy }: DeviceResource): readonly string[] {
    const allocated = this.#allocated(name);
    return healthy.filter((id) => !allocated.has(id));
  }

  #allocated(name: string): ReadonlySet<string> {
    return new Set(this.#entries.filter(({ resource }) => resource === name).flatMap(listIds));
  }

  #devicesOf(uid: string, container: string, name: string): readonly string[] {
    const entry = this.listEntries(uid, container).find(({ resource }) => resource === name);
    return entry === undefined ? [] : listIds(entry);
  }

  #getReusable(uid: string, name: string): ReadonlySet<string> {
    return (this.#reusable.uid === uid ? this.#reusable.ids.get(name) : undefined) ?? new Set();
  }

  #updateReusable(pod: Pod, container: Container, name: string): void {
    const ids = this.#reusable.ids.get(name) ?? new Set<string>();
    const isInit = initContainers(pod).some((each) => each.name === container.name && !isSidecar(each));
    for (const id of this.#devicesOf(podUid(pod), container.name, name)) {
      if (isInit) ids.add(id);
      else ids.delete(id);
    }
    this.#reusable.ids.set(name, ids);
  }

  #isRunning(uid: string, container: string): boolean {
    const running = this.#options.runningPods().find(({ pod }) => podUid(pod) === uid);
    return (
      running?.observation.containers.some(({ name, state }) => name === container && state === "running") ?? false
    );
  }

  #removeStale(): void {
    const pods = this.#options.activePods();
    if (pods === undefined) return;
    const active = new Set([this.#admitting, ...pods.map(({ pod }) => podUid(pod))]);
    this.#entries = this.#entries.filter(({ uid }) => active.has(uid));
  }

  #writeLater(): void {
    this.#write().catch((error: unknown) => {
      this.#options.log.warn("Failed to write the checkpoint of devices", { error: String(error) });
    });
  }

  #write(): Promise<void> {
    const path = join(this.#options.directory, CHECKPOINT);
    const write = (): Promise<void> => {
      const registered = [...this.#resources].map(([name, resource]) => [name, resource.healthy]);
      return writeDeviceCheckpoint(path, { entries: this.#entries, registered: Object.fromEntries(registered) });
    };
    this.#written = this.#written.then(write, write);
    return this.#written;
  }
}

function listIds({ devices }: DeviceEntry): readonly string[] {
  return [...new Set([...devices.values()].flat())];
}
