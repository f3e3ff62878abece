import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { NodeInfo } from "../../cache/node-info.ts";
import { isAssigned, PodInfo, uidOf } from "../../cache/pod-info.ts";
import { podRequests } from "../../cache/pod-requests.ts";
import type { ClusterEvent } from "../../framework/cluster-event.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { unschedulable } from "../../framework/rejection.ts";
import { allocationsOf } from "./allocation.ts";
import { compileStrategy, type ScoringStrategy } from "./scoring-strategy.ts";

const NAME = "NodeResourcesFit";

export interface NodeResourcesFitArgs {
  /** Extended resources that are not checked. */
  readonly ignoredResources?: readonly string[] | undefined;
  /** The same for all resources with the prefix `GROUP/`. */
  readonly ignoredResourceGroups?: readonly string[] | undefined;
  readonly scoringStrategy?: ScoringStrategy | undefined;
}

/** All requested resources must be free, and the node must allow another pod; scores by the resources that are free. */
export function createNodeResourcesFit(args: NodeResourcesFitArgs): Plugin {
  const strategy = compileStrategy(args.scoringStrategy);
  const isIgnored = (name: string): boolean =>
    args.ignoredResources?.includes(name) === true ||
    args.ignoredResourceGroups?.includes(name.split("/")[0]!) === true;
  return {
    name: NAME,
    points: ["preFilter", "filter", "preScore", "score"],
    events: [
      { resource: "Pod", actions: ["Delete", "UpdatePodScaleDown"], hint: isSchedulableAfterPodChange },
      {
        resource: "Node",
        actions: ["Add", "UpdateNodeAllocatable"],
        hint: (pod, { before, after }) =>
          isSchedulableAfterNodeChange(pod, before as Node | undefined, after as Node, isIgnored),
      },
    ],
    preFilter({ pod }) {
      const required = requirementsOf(pod, isIgnored);
      return {
        filter: {
          filter(node) {
            const { requested, allocatable } = node;
            if (
              node.pods.size + 1 <= node.allowedPods &&
              required.milliCpu <= headroom(allocatable.milliCpu, requested.milliCpu, required.milliCpu) &&
              required.memory <= headroom(allocatable.memory, requested.memory, required.memory) &&
              required.others.length === 0
            ) {
              return undefined;
            }
            const reasons = insufficientResources(required, node);
            return reasons.length === 0 ? undefined : unschedulable(NAME, ...reasons);
          },
        },
      };
    },
    preScore({ pod }) {
      const allocations = allocationsOf(pod, strategy.resources, false);
      return { score: (node) => strategy.score(allocations, node) };
    },
  };
}

interface Requirements {
  readonly milliCpu: number;
  readonly memory: number;
  /** Other resources of which the pod requests some. */
  readonly others: readonly (readonly [name: string, amount: number])[];
}

function requirementsOf({ requests }: PodInfo, isIgnored: (name: string) => boolean): Requirements {
  const others: [string, number][] = [];
  if (requests.ephemeralStorage > 0) others.push(["ephemeral-storage", requests.ephemeralStorage]);
  for (const [name, amount] of requests.scalars) if (amount !== 0 && !isIgnored(name)) others.push([name, amount]);
  return { milliCpu: requests.milliCpu, memory: requests.memory, others };
}

/** A resource of which none is requested is always free, even where too much is allocated. */
function headroom(allocatable: number, requested: number, required: number): number {
  return required === 0 ? 0 : allocatable - requested;
}

function insufficientResources(required: Requirements, node: NodeInfo): readonly string[] {
  const { allocatable, requested } = node;
  const reasons: string[] = [];
  if (node.pods.size + 1 > node.allowedPods) reasons.push("Too many pods");
  const check = (name: string, amount: number): void => {
    if (amount > headroom(allocatable.get(name), requested.get(name), amount)) reasons.push(`Insufficient ${name}`);
  };
  check("cpu", required.milliCpu);
  check("memory", required.memory);
  for (const [name, amount] of required.others) check(name, amount);
  return reasons;
}

function isSchedulableAfterPodChange(pod: Pod, { before, after }: ClusterEvent): boolean {
  if (after === undefined) return isAssigned(before as Pod) || Boolean((before as Pod).status?.nominatedNodeName);
  if (uidOf(after as Pod) === uidOf(pod)) return true;
  if (!isAssigned(after as Pod)) return false;
  const wanted = podRequests(pod);
  const [old, next] = [podRequests(before as Pod), podRequests(after as Pod)];
  return wanted.names().some((name) => next.get(name) < old.get(name));
}

/** The pod fits the node as if that were empty, and the node has more of what the pod requests. */
function isSchedulableAfterNodeChange(
  pod: Pod,
  before: Node | undefined,
  after: Node,
  isIgnored: (name: string) => boolean,
): boolean {
  const info = new PodInfo(pod);
  const required = requirementsOf(info, isIgnored);
  const next = emptyNode(after);
  if (insufficientResources(required, next).length > 0) return false;
  if (before === undefined) return true;
  const old = emptyNode(before);
  if (next.allowedPods > old.allowedPods) return true;
  return info.requests.names().some((name) => next.allocatable.get(name) > old.allocatable.get(name));
}

function emptyNode(node: Node): NodeInfo {
  const info = new NodeInfo(node.metadata?.name ?? "");
  info.setNode(node);
  return info;
}
