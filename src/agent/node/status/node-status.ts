/** Puts the node's status together. */

import { hostname } from "node:os";
import type { NodeStatus } from "../../../api/core/node/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { AgentConfig } from "../../agent-config.ts";
import { agentVersion } from "../../agent-config.ts";
import type { StatusResponse } from "../../runtime/cri/runtime-status.ts";
import type { ImageService, Runtime } from "../../runtime/runtime.ts";
import { computeNodeCapacity } from "./capacity.ts";
import { computeNodeConditions } from "./conditions.ts";
import { type MachineInfo, readUsage } from "../machine/machine.ts";

export interface NodeStatusOptions {
  readonly config: AgentConfig;
  readonly machine: MachineInfo;
  readonly runtime: Runtime;
  readonly images: ImageService;
  /** The node's addresses, looked up anew. */
  readonly ips: () => Promise<readonly string[]>;
  /** Of the agent's HTTPS server; 0 when it is off. */
  readonly port: () => number;
  readonly relistHealthy: () => boolean;
  readonly manifestProblems: () => readonly string[];
  readonly now: () => number;
  /** Names of the attached volumes that pods use. */
  readonly volumesInUse?: () => readonly string[];
}

/** Names per image, as Kubernetes bounds them. */
const IMAGE_NAMES_MAX = 5;

export async function collectNodeStatus(options: NodeStatusOptions, previous: NodeStatus | undefined): Promise<NodeStatus> {
  const { config, machine } = options;
  const [usage, runtime, version, images, ips] = await Promise.all([
    readUsage(config.rootDir),
    options.runtime.status({}).catch((): StatusResponse | undefined => undefined),
    options.runtime.version({}).catch(() => undefined),
    listImages(options).catch(() => previous?.images ?? []),
    options.ips(),
  ]);
  const { capacity, allocatable } = computeNodeCapacity(machine, usage, config.node);
  const port = options.port();
  const runtimeVersion =
    version === undefined ? "containerd://Unknown" : `${version.runtimeName}://${stripVersionPrefix(version.runtimeVersion ?? "")}`;
  return {
    capacity,
    allocatable,
    conditions: computeNodeConditions({
      machine,
      usage,
      evictionHard: config.node.evictionHard,
      runtime,
      relistHealthy: options.relistHealthy(),
      manifestProblems: options.manifestProblems(),
      now: formatTime(options.now()),
      previous: previous?.conditions ?? [],
    }),
    addresses: [
      ...ips.map((address) => ({ type: "InternalIP", address })),
      { type: "Hostname", address: config.nodeName === "" ? hostname() : config.nodeName },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    nodeInfo: {
      machineID: machine.machineId,
      systemUUID: machine.systemUuid,
      bootID: machine.bootId,
      kernelVersion: machine.kernelVersion,
      osImage: machine.osImage,
      containerRuntimeVersion: runtimeVersion,
      kubeletVersion: agentVersion,
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture: machine.architecture,
    },
    images,
    ...runtimeFeatures(runtime),
    ...reportVolumesInUse(options, previous),
  };
}

/** What only newer runtimes can do, and tell of. */
function runtimeFeatures(runtime: StatusResponse | undefined): Pick<NodeStatus, "runtimeHandlers" | "features"> {
  const { runtimeHandlers = [], features } = runtime ?? {};
  const handlers = runtimeHandlers.map(({ name = "", features: own = {} }) => ({ name, features: own }));
  const { supplementalGroupsPolicy } = features ?? {};
  return {
    ...(handlers.length === 0 ? {} : { runtimeHandlers: handlers }),
    ...(supplementalGroupsPolicy === undefined ? {} : { features: { supplementalGroupsPolicy } }),
  };
}

/** What was in use and is no longer has to be said. */
function reportVolumesInUse({ volumesInUse }: NodeStatusOptions, previous: NodeStatus | undefined): Partial<NodeStatus> {
  const names = volumesInUse?.() ?? [];
  return names.length === 0 && previous?.volumesInUse === undefined ? {} : { volumesInUse: names };
}

/** containerd of some distributions answers `1.6.20~ds1`. */
function stripVersionPrefix(version: string): string {
  return version.replace(/^v/, "");
}

/** Biggest first; bounded as the configuration says. */
async function listImages(options: NodeStatusOptions): Promise<NonNullable<NodeStatus["images"]>> {
  const max = options.config.node.statusMaxImages;
  const { images = [] } = await options.images.listImages({});
  const entries = images
    .map((image) => ({
      names: [...(image.repoDigests ?? []), ...(image.repoTags ?? [])].slice(0, IMAGE_NAMES_MAX),
      sizeBytes: Number(image.size ?? 0n),
    }))
    .sort((a, b) => b.sizeBytes - a.sizeBytes || (a.names[0] ?? "").localeCompare(b.names[0] ?? ""));
  return max < 0 ? entries : entries.slice(0, max);
}

/** Both spellings, for tools of either. */
export function machineLabels(machine: MachineInfo, nodeName: string): Readonly<Record<string, string>> {
  const { architecture } = machine;
  return {
    "beta.kubernetes.io/arch": architecture,
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": architecture,
    "kubernetes.io/hostname": nodeName,
    "kubernetes.io/os": "linux",
    "svc.io/arch": architecture,
    "svc.io/hostname": nodeName,
    "svc.io/os": "linux",
  };
}
