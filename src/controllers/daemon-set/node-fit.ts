/** Which nodes run a daemon set's pods. */
import type { DaemonSet } from "../../api/apps/daemon-set/schema.ts";
import type { Node } from "../../api/core/node/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { affinityMismatch } from "../../scheduler/plugins/nodes/node-selector.ts";
import { isTolerated } from "../../scheduler/plugins/nodes/tolerations.ts";
import { addDaemonTolerations } from "./daemon-pods.ts";

export interface NodeFit {
  /** A pod is created on the node. */
  readonly shouldRun: boolean;
  /** A pod that is on the node already stays. */
  readonly shouldContinue: boolean;
}

/** Each sync evaluates every node. */
const podSpecs = new WeakMap<DaemonSet, PodSpec>();

const NO: NodeFit = { shouldRun: false, shouldContinue: false };

export function fitNode(node: Node, daemonSet: DaemonSet): NodeFit {
  const podSpec = podSpecOf(daemonSet);
  const { nodeName = "", tolerations = [] } = podSpec;
  if (nodeName !== "" && nodeName !== node.metadata?.name) return NO;
  if (affinityMismatch({ spec: podSpec }, node).length > 0) return NO;
  const untolerated = (node.spec?.taints ?? []).filter((taint) => !isTolerated(tolerations, taint));
  return {
    shouldRun: untolerated.every(({ effect }) => effect === "PreferNoSchedule"),
    shouldContinue: untolerated.every(({ effect }) => effect !== "NoExecute"),
  };
}

function podSpecOf(daemonSet: DaemonSet): PodSpec {
  const known = podSpecs.get(daemonSet);
  if (known !== undefined) return known;
  const created = addDaemonTolerations(daemonSet.spec?.template?.spec ?? { containers: [] });
  podSpecs.set(daemonSet, created);
  return created;
}

/** Status updates of a node do not change which pods fit. */
export function isSameForPods(a: Node, b: Node): boolean {
  const key = ({ metadata, spec }: Node): string => JSON.stringify([metadata?.labels, spec?.taints]);
  return key(a) === key(b);
}
