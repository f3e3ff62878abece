/** Converts the flags of `svc up` to its options: directories, names and the host's addresses. */
import { join, resolve } from "node:path";
import { storeQuotaBytes } from "../apiserver/config/options.ts";
import { type ForwardRule, parseForwardRule } from "../dns/forward/forward-rule.ts";
import type { ParsedFlags } from "../flags/flag.ts";
import type { GateSettings } from "../flags/types/gate-settings.ts";
import { policyTableName } from "../network-policy/table-name.ts";
import { gatewayOf } from "../pod-network/cni-config.ts";
import { type NetworkNames, nameSuffix, networkNames } from "../pod-network/network-names.ts";
import { hostAddresses } from "../std/net/host-addresses.ts";
import { addressBits, type Cidr, formatCidr, parseCidr } from "../std/net/ip.ts";
import { upFlags } from "./flags.ts";
import { addressInRange, checkRanges, findCollision, isInside } from "./node/address-ranges.ts";
import { chooseNodeAddresses } from "./node/addresses.ts";

export interface UpOptions {
  readonly dataDir: string;
  /** For sockets and mounts; its path is short, and a reboot empties it. */
  readonly runDir: string;
  readonly imageDir: string;
  readonly podLogsDir: string;
  readonly bindAddress: string;
  readonly securePort: number;
  /** Threads that serve connections of the API server. */
  readonly workers: number;
  readonly agentPort: number;
  /** Undefined: no quota. */
  readonly storeQuotaBytes: number | undefined;
  readonly controllers: readonly string[];
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** All addresses of the host, for the API server's certificate. */
  readonly addresses: readonly string[];
  readonly podCidr: string;
  readonly podNetwork: "auto" | "vxlan" | "none";
  readonly networkNames: NetworkNames;
  /** Directories of CNI; undefined: our own, and the first that has the usual plugins. */
  readonly cniConfDir: string | undefined;
  readonly cniBinDir: string | undefined;
  readonly serviceCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
  /** The name of the service proxy's tables of nftables; undefined: svc up runs no service proxy. */
  readonly proxyTable: string | undefined;
  readonly networkPolicy: { readonly isEnabled: boolean; readonly table: string };
  /** Undefined: svc up starts containerd. */
  readonly runtimeEndpoint: string | undefined;
  readonly stopPods: boolean;
  readonly clusterDomain: string;
  readonly clusterDns: readonly string[];
  /** Undefined: svc up does not serve the DNS of the cluster. */
  readonly dns: { readonly forward: readonly ForwardRule[] } | undefined;
  /** `--feature-gates`, for the API server and the agent. */
  readonly featureGates: GateSettings;
  /** `--runtime-config` of the API server. */
  readonly runtimeConfig: Readonly<Record<string, string>>;
}

export interface HostEnvironment {
  readonly hostname: string;
  readonly interfaces: Parameters<typeof hostAddresses>[0];
  /** The content of `/proc/net/route`. */
  readonly routes: string | undefined;
}

/** Throws an error for the operator. */
export function upOptions(flags: ParsedFlags<typeof upFlags>, surroundings: HostEnvironment): UpOptions {
  const dataDir = resolve(flags["data-dir"]);
  // Another data directory is another cluster, which needs sockets and a bridge of its own.
  const suffix = nameSuffix(dataDir, upFlags["data-dir"].default);
  const addresses = hostAddresses(surroundings.interfaces, surroundings.routes);
  const serviceCidrs = flags["service-cidr"].length > 0 ? flags["service-cidr"] : [defaultServiceCidr(suffix)];
  const podCidr = choosePodCidr(flags["pod-cidr"], flags["cluster-cidr"]);
  const { routes } = surroundings;
  const clusterCidrs =
    flags["cluster-cidr"].length > 0 ? flags["cluster-cidr"] : [defaultClusterCidr(podCidr, serviceCidrs, routes)];
  checkRanges(
    [
      ...serviceCidrs.map((range) => ({ flag: "service-cidr", range })),
      ...clusterCidrs.map((range) => ({ flag: "cluster-cidr", range })),
    ],
    routes,
  );
  const cniConfDir = flags["cni-conf-dir"] === "" ? undefined : resolve(flags["cni-conf-dir"]);
  return {
    dataDir,
    runDir: suffix === undefined ? "/run/svc" : `/run/svc-${suffix}`,
    imageDir: flags["image-dir"] === "" ? join(dataDir, "images") : resolve(flags["image-dir"]),
    podLogsDir: suffix === undefined ? "/var/log/pods" : join(dataDir, "pod-logs"),
    bindAddress: flags["bind-address"],
    securePort: flags["secure-port"],
    workers: flags.workers,
    agentPort: flags["agent-port"],
    storeQuotaBytes: storeQuotaBytes(flags["kvstore-quota-bytes"]),
    controllers: flags["embedded-controllers"],
    nodeName: (flags["node-name"] === "" ? surroundings.hostname : flags["node-name"]).trim().toLowerCase(),
    nodeIps: chooseNodeAddresses(flags["node-ip"], addresses),
    addresses,
    podCidr,
    podNetwork: cniConfDir === undefined ? flags["pod-network"] : "none",
    networkNames: networkNames(suffix),
    cniConfDir,
    cniBinDir: flags["cni-bin-dir"] === "" ? undefined : resolve(flags["cni-bin-dir"]),
    serviceCidrs,
    clusterCidrs,
    networkPolicy: {
      isEnabled: flags["network-policy"] && cniConfDir === undefined && flags["pod-network"] !== "none",
      table: policyTableName(suffix),
    },
    proxyTable: flags["service-proxy"] ? (suffix === undefined ? "svc-proxy" : `svc-proxy-${suffix}`) : undefined,
    runtimeEndpoint: flags["container-runtime-endpoint"] === "" ? undefined : flags["container-runtime-endpoint"],
    stopPods: flags["stop-pods"],
    clusterDomain: flags["cluster-domain"],
    clusterDns: flags["cluster-dns"].length === 0 ? [addressInRange(serviceCidrs[0]!, 10n)] : flags["cluster-dns"],
    dns: flags["serve-dns"]
      ? { forward: flags["dns-forward"].flatMap((text) => parseForwardRule(text) ?? []) }
      : undefined,
    featureGates: flags["feature-gates"],
    runtimeConfig: flags["runtime-config"],
  };
}

/** Clusters on one host have different ranges, since the rules of all apply to each packet. */
function defaultServiceCidr(suffix: string | undefined): string {
  if (suffix === undefined) return "10.96.0.0/16";
  // One of 240 ranges of 4096 addresses.
  const index = Number.parseInt(suffix, 16) % 240;
  return `10.${97 + Math.floor(index / 16)}.${(index % 16) * 16}.0/20`;
}

/** The first block of the range of all pods, unless the flag has another one. */
function choosePodCidr(podCidr: string, clusterCidrs: readonly string[]): string {
  const cluster = clusterCidrs.find((range) => !range.includes(":"));
  if (podCidr === "")
    return cluster === undefined
      ? POD_CIDR
      : formatCidr(rangeAround(cluster, Math.max(NODE_BITS, Number(cluster.split("/")[1]))));
  gatewayOf(podCidr);
  if (cluster !== undefined && !isInside(podCidr, cluster)) {
    throw new Error(`--pod-cidr=${podCidr} is outside of --cluster-cidr=${cluster}`);
  }
  return podCidr;
}

/**
 * A range that has blocks for other nodes as well: 256 of them if nothing else is in the way. The range of this node
 * alone if no larger range is free.
 */
function defaultClusterCidr(podCidr: string, serviceCidrs: readonly string[], routes: string | undefined): string {
  if (isInside(podCidr, CLUSTER_CIDR)) return CLUSTER_CIDR;
  const bits = Number(podCidr.split("/")[1]);
  for (let length = Math.max(bits - BLOCK_BITS, CLUSTER_BITS_MIN); length < bits; length++) {
    const range = formatCidr(rangeAround(podCidr, length));
    const others = serviceCidrs.map((service) => ({ flag: "service-cidr", range: service }));
    if (findCollision([{ flag: "cluster-cidr", range }, ...others], routes) === undefined) return range;
  }
  return podCidr;
}

/** The URL of the API server for components on this host. */
export function localServerUrl({ bindAddress, securePort }: Pick<UpOptions, "bindAddress" | "securePort">): string {
  if (bindAddress === "0.0.0.0" || bindAddress === "") return `https://127.0.0.1:${securePort}`;
  if (bindAddress === "::") return `https://[::1]:${securePort}`;
  return `https://${bindAddress.includes(":") ? `[${bindAddress}]` : bindAddress}:${securePort}`;
}

const CLUSTER_CIDR = "10.244.0.0/16";
const POD_CIDR = "10.244.0.0/24";
/** The prefix length of the pod CIDRs of nodes. */
const NODE_BITS = 24;
/** Of the number of nodes. */
const BLOCK_BITS = 8;
const CLUSTER_BITS_MIN = 8;

/** The network with the prefix length that begins as the range does, or contains it. */
function rangeAround(range: string, prefixLength: number): Cidr {
  const block = parseCidr(range);
  if (block === undefined) throw new Error(`Cannot use ${JSON.stringify(range)}: it is not a CIDR`);
  const length = Math.max(prefixLength, 0);
  const host = BigInt(addressBits(block.family) - length);
  return { ...block, network: (block.network >> host) << host, prefixLength: length };
}

/** The address of the service `kubernetes` in clusters that were created with the range 10.0.0.0/24. */
const EARLIER_SERVICE_IP = "10.0.0.1";

export function serverNames(options: UpOptions): readonly string[] {
  const wildcard = ["0.0.0.0", "::", ""].includes(options.bindAddress);
  const names = [
    "localhost",
    "127.0.0.1",
    "::1",
    options.nodeName,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    `kubernetes.default.svc.${options.clusterDomain}`,
    ...options.serviceCidrs.map((range) => addressInRange(range, 1n)),
    EARLIER_SERVICE_IP,
    gatewayOf(options.podCidr),
    ...options.nodeIps,
    ...options.addresses,
    ...(wildcard ? [] : [options.bindAddress]),
  ];
  return [...new Set(names)];
}
