/** The order in which nodes are tried: one of each zone in turn, so that the first feasible nodes lie in all zones. */
import { getMember } from "../../schema/value/plain-object.ts";
import type { NodeInfo } from "./node-info.ts";

const REGION = ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];
const ZONE = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];

/** Within a zone in the order of the iteration. */
export function interleaveZones(nodes: Iterable<NodeInfo>): NodeInfo[] {
  const zones = [...Map.groupBy(nodes, zoneOf).values()];
  const ordered: NodeInfo[] = [];
  const longest = Math.max(0, ...zones.map((zone) => zone.length));
  for (let index = 0; index < longest; index++) {
    for (const zone of zones) {
      const node = zone[index];
      if (node !== undefined) ordered.push(node);
    }
  }
  return ordered;
}

function zoneOf({ labels }: NodeInfo): string {
  const first = (names: readonly string[]): string =>
    names.map((name) => getMember(labels, name)).find((value) => value !== undefined) ?? "";
  return `${first(REGION)}\0${first(ZONE)}`;
}
