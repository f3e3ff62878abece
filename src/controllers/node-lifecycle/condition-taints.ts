/** The taints for node conditions, with the effects NoSchedule and NoExecute. */
import type { Node, Taint } from "../../api/core/node/schema.ts";

const PREFIX = "node.kubernetes.io/";
export const NOT_READY = `${PREFIX}not-ready`;
export const UNREACHABLE = `${PREFIX}unreachable`;
const UNSCHEDULABLE = `${PREFIX}unschedulable`;

/** The taint key by condition type and status. */
const BY_CONDITION: ReadonlyMap<string, string> = new Map([
  ["Ready=False", NOT_READY],
  ["Ready=Unknown", UNREACHABLE],
  ["MemoryPressure=True", `${PREFIX}memory-pressure`],
  ["DiskPressure=True", `${PREFIX}disk-pressure`],
  ["NetworkUnavailable=True", `${PREFIX}network-unavailable`],
  ["PIDPressure=True", `${PREFIX}pid-pressure`],
]);
/** Including the alias of the not-ready taint in the project's group. */
const CONDITION_KEYS = new Set([...BY_CONDITION.values(), UNSCHEDULABLE, "node.svc.io/not-ready"]);

/** The status of the node's `Ready` condition. */
export function readyStatus({ status }: Node): string | undefined {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status;
}

/** Whether the node has a NoExecute taint because it is not ready. */
export function hasNoExecuteTaint({ spec }: Node): boolean {
  return (spec?.taints ?? []).some(isReadinessTaint);
}

/**
 * The desired taints; undefined if they are up to date. Other taints are kept. `evictPods`: a node that is not ready
 * gets the NoExecute taint.
 */
export function desiredTaints(node: Node, evictPods: boolean, now: string): readonly Taint[] | undefined {
  const taints = node.spec?.taints ?? [];
  const desired: { readonly key: string; readonly effect: Taint["effect"] }[] = [];
  for (const { type, status } of node.status?.conditions ?? []) {
    const key = BY_CONDITION.get(`${type}=${status}`);
    if (key !== undefined) desired.push({ key, effect: "NoSchedule" });
  }
  if (node.spec?.unschedulable === true) desired.push({ key: UNSCHEDULABLE, effect: "NoSchedule" });
  const readiness = BY_CONDITION.get(`Ready=${readyStatus(node)}`);
  if (readiness !== undefined && evictPods) desired.push({ key: readiness, effect: "NoExecute" });

  const isDesired = (taint: Taint): boolean =>
    desired.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const kept = taints.filter((taint) => !isManaged(taint) || isDesired(taint));
  const added = desired
    .filter(({ key, effect }) => !taints.some((taint) => taint.key === key && taint.effect === effect))
    .map((taint) => ({ ...taint, timeAdded: now }));
  return added.length === 0 && kept.length === taints.length ? undefined : [...kept, ...added];
}

function isManaged(taint: Taint): boolean {
  return taint.effect === "NoSchedule" ? CONDITION_KEYS.has(taint.key) : isReadinessTaint(taint);
}

function isReadinessTaint({ key, effect }: Taint): boolean {
  return effect === "NoExecute" && (key === NOT_READY || key === UNREACHABLE);
}
