/** Opens the managers of CPUs, memory and devices, and the sockets for device plugins and monitoring agents. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { addQuantities, formatQuantity, parseQuantity, type Quantity } from "../../api/meta/quantity.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { computeThreshold } from "../node/status/capacity.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";
import { serveUnix } from "../plugins/unix-server.ts";
import { type PodResourcesOptions, servePodResources } from "../pod-resources/pod-resources.ts";
import type { PodWorker } from "../pods/worker/pod-worker.ts";
import { CpuSet } from "../resource-managers/cpu/cpu-set.ts";
import { deviceRegistration, type RegisterRequest } from "../resource-managers/devices/messages.ts";
import { DEVICE_DIRECTORY, ResourceManagers } from "../resource-managers/resource-managers.ts";
import type { Foundation } from "./foundation.ts";

export interface ResourceManagerLinks {
  readonly workers: () => readonly PodWorker[];
  /** Whether all sources of pods have been read. */
  readonly isReady: () => boolean;
  /** The number of devices has changed. */
  readonly onDevicesChange: () => void;
}

/** Name of the agent's sockets, which plugins expect. */
const SOCKET = "kubelet.sock";

export interface NodeResources {
  readonly managers: ResourceManagers;
  /** By type of the plugins. */
  readonly pluginHandlers: Readonly<Record<string, PluginHandler>>;
}

/** Rejects with a message for the operator when the configuration does not fit the machine. */
export async function openResourceManagers(
  foundation: Foundation,
  { workers, isReady, onDevicesChange }: ResourceManagerLinks,
): Promise<NodeResources> {
  const { config, topology, metrics, clock, log, stack } = foundation;
  checkReservedCpus(foundation);
  const dynamic = await openClaims(foundation, { workers });
  const active = () => workers().filter(({ stateName }) => stateName !== "terminated");
  const managers = await ResourceManagers.open({
    config: config.resources,
    rootDir: config.rootDir,
    machine: topology,
    reservation: computeReservation(foundation),
    runtime: foundation.cri.runtime,
    activePods: () => (isReady() ? active() : undefined),
    runningPods: active,
    onDevicesChange() {
      onDevicesChange();
      if (!config.resources.reportsDeviceHealth) return;
      for (const worker of workers()) if (usesDevices(worker.pod)) worker.onRuntimeChange();
    },
    claims: dynamic?.claims,
    registry: metrics,
    clock,
    log: log.child("resources"),
  });
  stack.use(managers.devices);
  const pluginHandlers = { DevicePlugin: managers.devices, ...(dynamic && { DRAPlugin: dynamic.drivers }) };
  return { managers, pluginHandlers };
}

function usesDevices({ spec }: Pod): boolean {
  const isExtended = (name: string): boolean => name.includes("/");
  return (spec?.containers ?? []).some(({ resources }) => Object.keys(resources?.limits ?? {}).some(isExtended));
}

/** Runs without the static policy too: the reserved CPUs are not allocatable. */
function checkReservedCpus({ config, machine }: Foundation): void {
  const { reservedCpus } = config.resources.cpu;
  const isOutside = [...CpuSet.parse(reservedCpus)].some((cpu) => cpu >= machine.cpus);
  if (isOutside) throw new Error(`Invalid cpuset "${reservedCpus}" specified by --reserved-cpus`);
}

/** Undefined when the feature is off, or there is no API server to read claims from. */
async function openClaims(
  { config, client, metrics: registry, clock, log, stack }: Foundation,
  { workers }: Pick<ResourceManagerLinks, "workers">,
) {
  if (!config.resources.preparesClaims || client === undefined) return undefined;
  const [{ ClaimDrivers }, { ClaimManager }, { SliceCleaner }, { betaResourceClaimKind }] = await Promise.all([
    import("../resource-managers/claims/claim-drivers.ts"),
    import("../resource-managers/claims/claim-manager.ts"),
    import("../resource-managers/claims/slice-cleaner.ts"),
    import("../../api/resource/flat-versions/kinds.ts"),
  ]);
  const { nodeName } = config;
  const cleaner = stack.use(
    new SliceCleaner({ client, nodeName, clock, random: systemRandom, log: log.child("claims") }),
  );
  const onRegistered = (name: string): void => {
    cleaner.driverRegistered(name);
    for (const worker of workers()) worker.onRuntimeChange();
  };
  const onDeregistered = (name: string): void => cleaner.driverDeregistered(name);
  const drivers = stack.use(new ClaimDrivers({ clock, registry, onRegistered, onDeregistered }));
  const claims = await ClaimManager.open({
    rootDir: config.rootDir,
    drivers,
    readClaim: (namespace, name) => client.get(betaResourceClaimKind, { namespace, name }),
    registry,
    clock,
    log: log.child("claims"),
  });
  return { drivers, claims };
}

/** Accepts device plugins, and serves the resources of pods. */
export async function serveResources(
  { config, metrics, clock, log, stack }: Foundation,
  managers: ResourceManagers,
  { workers }: Pick<ResourceManagerLinks, "workers">,
): Promise<void> {
  const { devices } = managers;
  const directory = join(config.rootDir, DEVICE_DIRECTORY);
  const sockets = [
    async () => {
      await removeSockets(directory);
      return await serveUnix(join(directory, SOCKET), deviceRegistration, {
        register: async (request: RegisterRequest) => {
          await devices.registerByCall(request);
          return {};
        },
      });
    },
    () =>
      servePodResources({
        socket: join(config.rootDir, "pod-resources", SOCKET),
        managers,
        devices,
        pods: () => workers().map(({ pod }) => pod),
        claims: config.resources.servesDynamicResources ? listDynamicResources(managers) : undefined,
        servesGet: config.resources.servesPodResourcesGet,
        registry: metrics,
        clock,
      }),
  ];
  for (const open of sockets) {
    try {
      stack.use(await open());
    } catch (error) {
      // Pods without devices run all the same.
      log.warn("Cannot serve a socket of the node", { error: error instanceof Error ? error.message : String(error) });
    }
  }
}

function listDynamicResources({ claims }: ResourceManagers): PodResourcesOptions["claims"] {
  const list = (pod: Pod, container: Container) => {
    try {
      return claims?.listClaims(pod, container) ?? [];
    } catch {
      // The claim is not prepared yet.
      return [];
    }
  };
  return (pod, container) =>
    list(pod, container).map(({ name, namespace, devices }) => ({
      claimName: name,
      claimNamespace: namespace,
      claimResources: devices.map(({ driver, poolName = "", deviceName = "", cdiDeviceIds = [] }) => ({
        cdiDevices: cdiDeviceIds.map((id) => ({ name: id })),
        driverName: driver,
        poolName,
        deviceName,
      })),
    }));
}

/** Plugins register again when the sockets of an agent before this one are gone. */
async function removeSockets(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isSocket()) await rm(join(directory, entry.name), { force: true });
}

/** What the node's allocatable does not include of its capacity. */
function computeReservation({ config, machine }: Foundation): Readonly<Record<string, string>> {
  const { reserved, evictionHard, allocatableIgnoresEviction } = config.node;
  const available = allocatableIgnoresEviction ? undefined : evictionHard["memory.available"];
  const threshold = BigInt(computeThreshold(available, machine.memoryBytes)) * 1_000_000_000n;
  const memory = parseQuantity(reserved.memory ?? "0");
  // As Kubernetes formats it: percentages in binary units, quantities as they are written.
  const format = available?.endsWith("%") === false ? parseQuantity(available)?.format : undefined;
  const evicted: Quantity = { nanos: threshold, format: format ?? "BinarySI" };
  if (memory === undefined) throw new Error("the reserved memory is no quantity");
  return { ...reserved, memory: formatQuantity(addQuantities(memory, evicted)) };
}
