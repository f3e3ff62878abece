/** Opens the managers of CPUs, memory and devices, and the sockets for device plugins and monitoring agents. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { addQuantities, formatQuantity, parseQuantity } from "../../api/meta/quantity.ts";
import { computeThreshold } from "../node/status/capacity.ts";
import { serveUnix } from "../plugins/unix-server.ts";
import { servePodResources } from "../pod-resources/pod-resources.ts";
import type { PodWorker } from "../pods/worker/pod-worker.ts";
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

/** Rejects with a message for the operator when the configuration does not fit the machine. */
export async function openResourceManagers(
  foundation: Foundation,
  { workers, isReady, onDevicesChange }: ResourceManagerLinks,
): Promise<ResourceManagers> {
  const { config, topology, metrics, clock, log, stack } = foundation;
  const active = () => workers().filter(({ stateName }) => stateName !== "terminated");
  const managers = await ResourceManagers.open({
    config: config.resources,
    rootDir: config.rootDir,
    machine: topology,
    reservation: computeReservation(foundation),
    runtime: foundation.cri.runtime,
    activePods: () => (isReady() ? active() : undefined),
    runningPods: active,
    onDevicesChange,
    registry: metrics,
    clock,
    log: log.child("resources"),
  });
  stack.use(managers.devices);
  return managers;
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

/** Plugins register again when the sockets of an agent before this one are gone. */
async function removeSockets(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isSocket()) await rm(join(directory, entry.name), { force: true });
}

/** What the node's allocatable does not include of its capacity. */
function computeReservation({ config, machine }: Foundation): Readonly<Record<string, string>> {
  const { reserved, evictionHard } = config.node;
  const threshold = computeThreshold(evictionHard["memory.available"], machine.memoryBytes);
  const memory = parseQuantity(reserved.memory ?? "0");
  const evicted = parseQuantity(String(threshold));
  if (memory === undefined || evicted === undefined) throw new Error("the reserved memory is no quantity");
  return { ...reserved, memory: formatQuantity(addQuantities(memory, evicted)) };
}
