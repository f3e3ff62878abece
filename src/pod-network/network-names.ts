/** What the pod network of a cluster has on a host, by name: each cluster on a host has its own. */
import { createHash } from "node:crypto";

export interface NetworkNames {
  /** The bridge of the node's pods. */
  readonly bridge: string;
  /** The VXLAN device to nodes in other networks. */
  readonly device: string;
  /** The table of nftables. */
  readonly table: string;
  /** The metric of routes to other nodes; routes of other programs to the same destinations have another one. */
  readonly metric: number;
}

/** Routes to pods of other nodes have the routing protocol and one of these metrics. */
const METRIC_MIN = 8400;
const METRICS = 100;

/** Undefined: the names of the cluster in the default directory. Names of devices have at most 15 characters. */
export function networkNames(suffix: string | undefined): NetworkNames {
  if (suffix === undefined) {
    return { bridge: "svc0", device: "svc-vxlan", table: "svc-pod-network", metric: METRIC_MIN };
  }
  const metric = METRIC_MIN + 1 + (Number.parseInt(suffix, 16) % (METRICS - 1));
  return { bridge: `svc-${suffix}`, device: `svcx-${suffix}`, table: `svc-pod-network-${suffix}`, metric };
}

/** Eight hexadecimal digits; undefined for the default directory. */
export function nameSuffix(directory: string, defaultDirectory: string): string | undefined {
  if (directory === defaultDirectory) return undefined;
  return createHash("sha256").update(directory).digest("hex").slice(0, 8);
}

/** Whether a route of the host leads to pods of another node. */
export function isPodRoute(metric: number): boolean {
  return metric >= METRIC_MIN && metric < METRIC_MIN + METRICS;
}
