/** Collects the node's status. */

import { hostname } from "node:os";
import type { NodeStatus } from "../../../api/core/node/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { AgentConfig } from "../../agent-config.ts";
import type { DeviceCapacity } from "../../resource-managers/devices/device-manager.ts";
import type { StatusResponse } from "../../runtime/cri/runtime-status.ts";
import type { ImageService, Runtime } from "../../runtime/runtime.ts";
import { type MachineInfo, readUsage } from "../machine/machine.ts";
import { computeNodeCapacity } from "./capacity.ts";
import { type ConditionState, computeNodeConditions } from "./conditions.ts";

export interface NodeStatusOptions {
  readonly config: AgentConfig;
  readonly machine: MachineInfo;
  readonly runtime: Runtime;
  readonly images: ImageService;
  /** Reads the node's addresses. */
  readonly ips: () => Promise<readonly string[]>;
  /** Of the agent's HTTPS server; 0 when it is off. */
  readonly port: () => number;
  readonly relistProblem: () => string | undefined;
  readonly manifestProblems: () => readonly string[];
  /** Types of the pressure conditions that are true. */
  readonly pressures: () => readonly string[];
  /** Whether the machine shuts down. */
  readonly isShuttingDown: () => boolean;
  /** The condition of the tunnel; undefined without one. */
  readonly tunnel?: (() => ConditionState | undefined) | undefined;
  readonly now: () => number;
  /** Names of the attached volumes that pods use. */
  readonly volumesInUse?: () => readonly string[];
  /** Devices of device plugins. */
  readonly devices?: () => DeviceCapacity;
}

/** Names per image, as Kubernetes bounds them. */
const IMAGE_NAMES_MAX = 5;

export async function collectNodeStatus(
  options: NodeStatusOptions,
  previous: NodeStatus | undefined,
): Promise<NodeStatus> {
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
    version === undefined
      ? "containerd://Unknown"
      : `${version.runtimeName}://${formatRuntimeVersion(version.runtimeVersion ?? "")}`;
  const devices = options.devices?.();
  return {
    capacity: { ...capacity, ...devices?.capacity },
    allocatable: { ...allocatable, ...devices?.allocatable },
    conditions: computeNodeConditions({
      pressures: options.pressures(),
      runtime,
      relistProblem: options.relistProblem(),
      isShuttingDown: options.isShuttingDown(),
      manifestProblems: options.manifestProblems(),
      tunnel: options.tunnel?.(),
      now: formatTime(options.now()),
      previous: previous?.conditions ?? [],
    }),
    ...collectAddresses(config, ips, previous),
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    nodeInfo: {
      machineID: machine.machineId,
      systemUUID: machine.systemUuid,
      bootID: machine.bootId,
      kernelVersion: machine.kernelVersion,
      osImage: machine.osImage,
      containerRuntimeVersion: runtimeVersion,
      kubeletVersion: config.version,
      kubeProxyVersion: config.node.reportsProxyVersion ? config.version : "",
      operatingSystem: "linux",
      architecture: machine.architecture,
    },
    images,
    ...runtimeFeatures(runtime, config.pods.supplementalGroupsPolicy),
    ...reportVolumesInUse(options, previous),
  };
}

/**
 * The addresses that an external cloud provider has set remain. Until then the node has those of --node-ip only, since
 * others may be unlike the provider's.
 */
function collectAddresses(
  { nodeName, node }: AgentConfig,
  ips: readonly string[],
  previous: NodeStatus | undefined,
): Pick<NodeStatus, "addresses"> {
  const isSet = previous?.addresses !== undefined && previous.addresses.length > 0;
  if (node.externalCloud && isSet) return { addresses: previous.addresses };
  if (node.externalCloud && node.ips.every(isUnspecified)) return {};
  const addresses = ips.map((address) => ({ type: "InternalIP", address }));
  return { addresses: [...addresses, { type: "Hostname", address: nodeName === "" ? hostname() : nodeName }] };
}

/** Selects an IP family in place of an address. */
function isUnspecified(ip: string): boolean {
  return ip === "0.0.0.0" || ip === "::";
}

/** Features that newer runtimes report. */
function runtimeFeatures(
  runtime: StatusResponse | undefined,
  groupsPolicy: boolean,
): Pick<NodeStatus, "runtimeHandlers" | "features"> {
  const { runtimeHandlers = [], features } = runtime ?? {};
  const handlers = runtimeHandlers.map(({ name = "", features: own = {} }) => ({ name, features: own }));
  const { supplementalGroupsPolicy } = features ?? {};
  return {
    ...(handlers.length === 0 ? {} : { runtimeHandlers: handlers }),
    ...(supplementalGroupsPolicy === undefined || !groupsPolicy ? {} : { features: { supplementalGroupsPolicy } }),
  };
}

/** An empty list must be reported once there was a volume in use. */
function reportVolumesInUse(
  { volumesInUse }: NodeStatusOptions,
  previous: NodeStatus | undefined,
): Partial<NodeStatus> {
  const names = volumesInUse?.() ?? [];
  return names.length === 0 && previous?.volumesInUse === undefined ? {} : { volumesInUse: names };
}

/** As Kubernetes writes a version that it has parsed: `v1.7.0` → `1.7.0`, `1.6.20~ds1` → `1.6.20`. */
export function formatRuntimeVersion(version: string): string {
  const semantic = /^v?(\d+\.\d+\.\d+(?:-[\dA-Za-z.-]+)?(?:\+[\dA-Za-z.-]+)?)$/.exec(version)?.[1];
  return semantic ?? /^v?(\d+(?:\.\d+)+)/.exec(version)?.[1] ?? version;
}

/** Largest first, at most `--node-status-max-images`. */
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

/** With Kubernetes' and svc's prefixes. */
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
