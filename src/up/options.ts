/** What `svc up` is told, and what follows from it: places, names, the machine's addresses. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import type { ParsedFlags } from "../flags/flag.ts";
import { hostAddresses } from "../std/net/host-addresses.ts";
import { gatewayOf } from "./cni/conflist.ts";
import type { upFlags } from "./flags.ts";
import { chooseNodeAddresses } from "./node/addresses.ts";

export interface UpOptions {
  readonly dataDir: string;
  /** For sockets and mounts: short, and gone after a reboot. */
  readonly runDir: string;
  readonly imageDir: string;
  readonly podLogsDir: string;
  readonly bindAddress: string;
  readonly securePort: number;
  readonly agentPort: number;
  readonly controllers: readonly string[];
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** All of the host's, for the API server's certificate. */
  readonly addresses: readonly string[];
  readonly podCidr: string;
  readonly bridge: string;
  /** Undefined: a containerd of our own. */
  readonly runtimeEndpoint: string | undefined;
  readonly stopPods: boolean;
}

export interface HostEnvironment {
  readonly hostname: string;
  readonly interfaces: Parameters<typeof hostAddresses>[0];
  /** Content of `/proc/net/route`. */
  readonly routes: string | undefined;
}

const DEFAULT_DATA_DIR = "/var/lib/svc";

/** Throws with an operator's message. */
export function upOptions(flags: ParsedFlags<typeof upFlags>, surroundings: HostEnvironment): UpOptions {
  const dataDir = resolve(flags["data-dir"]);
  const isDefault = dataDir === DEFAULT_DATA_DIR;
  // Another data directory is another cluster: its sockets and its bridge must not be the first one's.
  const suffix = createHash("sha256").update(dataDir).digest("hex").slice(0, 8);
  const podCidr = flags["pod-cidr"] === "" ? "10.244.0.0/24" : flags["pod-cidr"];
  gatewayOf(podCidr);
  const addresses = hostAddresses(surroundings.interfaces, surroundings.routes);
  return {
    dataDir,
    runDir: isDefault ? "/run/svc" : `/run/svc-${suffix}`,
    imageDir: flags["image-dir"] === "" ? join(dataDir, "images") : resolve(flags["image-dir"]),
    podLogsDir: isDefault ? "/var/log/pods" : join(dataDir, "pod-logs"),
    bindAddress: flags["bind-address"],
    securePort: flags["secure-port"],
    agentPort: flags["agent-port"],
    controllers: flags["embedded-controllers"],
    nodeName: (flags["node-name"] === "" ? surroundings.hostname : flags["node-name"]).trim().toLowerCase(),
    nodeIps: chooseNodeAddresses(flags["node-ip"], addresses),
    addresses,
    podCidr,
    bridge: isDefault ? "svc0" : `svc-${suffix}`,
    runtimeEndpoint: flags["container-runtime-endpoint"] === "" ? undefined : flags["container-runtime-endpoint"],
    stopPods: flags["stop-pods"],
  };
}

/** Where components on this host reach the API server. */
export function localServerUrl({ bindAddress, securePort }: Pick<UpOptions, "bindAddress" | "securePort">): string {
  if (bindAddress === "0.0.0.0" || bindAddress === "") return `https://127.0.0.1:${securePort}`;
  if (bindAddress === "::") return `https://[::1]:${securePort}`;
  return `https://${bindAddress.includes(":") ? `[${bindAddress}]` : bindAddress}:${securePort}`;
}

/** The first address of Kubernetes' default service range: what `kubernetes.default` will be. */
const SERVICE_IP = "10.96.0.1";

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
    "kubernetes.default.svc.cluster.local",
    SERVICE_IP,
    gatewayOf(options.podCidr),
    ...options.nodeIps,
    ...options.addresses,
    ...(wildcard ? [] : [options.bindAddress]),
  ];
  return [...new Set(names)];
}
