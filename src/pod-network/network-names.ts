/** What the pod network of a cluster has on a host, by name: each cluster on a host has its own. */
import { createHash } from "node:crypto";

export interface NetworkNames {
  /** Of the pods. */
  readonly bridge: string;
  /** To nodes in other networks. */
  readonly device: string;
  /** Of nftables. */
  readonly table: string;
  /** Of routes to other nodes: another one than that of routes to the same destinations that others made. */
  readonly metric: number;
}

/** With their routing protocol, these metrics are of routes to pods of other nodes. */
const METRIC_MIN = 8400;
const METRICS = 100;

/** Without a suffix: those of the cluster in the default directory. Names of devices have at most 15 characters. */
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
