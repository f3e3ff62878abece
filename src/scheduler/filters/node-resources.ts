import { type HostPort, hostPortsOf } from "../node-info.ts";
import { podRequests } from "../resources.ts";
import type { Filter } from "./filter.ts";

const UNIT = 1_000_000_000n;

/** All requested resources must be free, and the node must allow another pod. */
export const resourcesFit: Filter = (pod, info) => {
  const reasons: string[] = [];
  const pods = info.allocatable.get("pods");
  if (pods !== undefined && BigInt(info.pods.length + 1) * UNIT > pods) reasons.push("Too many pods");
  for (const [name, requested] of podRequests(pod)) {
    if (requested === 0n) continue;
    const free = (info.allocatable.get(name) ?? 0n) - (info.requested.get(name) ?? 0n);
    if (requested > free) reasons.push(`Insufficient ${name}`);
  }
  return reasons;
};

/** A host port is in use per protocol and address; the wildcard address conflicts with all. */
export const hostPortsFree: Filter = (pod, info) => {
  const clash = hostPortsOf(pod).some((requested) => info.hostPorts.some((taken) => conflicts(requested, taken)));
  return clash ? ["node(s) didn't have free ports for the requested pod ports"] : [];
};

function conflicts(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  return a.ip === b.ip || a.ip === "0.0.0.0" || b.ip === "0.0.0.0";
}
