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

/** All taints, with those of the effect NoSchedule as desired; undefined if they are up to date. */
export function desiredNoScheduleTaints(node: Node, now: string): readonly Taint[] | undefined {
  const keys = (node.status?.conditions ?? []).flatMap(
    ({ type, status }) => BY_CONDITION.get(`${type}=${status}`) ?? [],
  );
  if (node.spec?.unschedulable === true) keys.push(UNSCHEDULABLE);
  const isManaged = ({ key, effect }: Taint): boolean => effect === "NoSchedule" && CONDITION_KEYS.has(key);
  return replaceTaints(node, isManaged, keys, "NoSchedule", now);
}

/** The same for the effect NoExecute. `evictPods`: a node that is not ready gets the taint. */
export function desiredNoExecuteTaints(node: Node, evictPods: boolean, now: string): readonly Taint[] | undefined {
  const readiness = evictPods ? BY_CONDITION.get(`Ready=${readyStatus(node)}`) : undefined;
  return replaceTaints(node, isReadinessTaint, readiness === undefined ? [] : [readiness], "NoExecute", now);
}

function replaceTaints(
  node: Node,
  isManaged: (taint: Taint) => boolean,
  keys: readonly string[],
  effect: Taint["effect"],
  now: string,
): readonly Taint[] | undefined {
  const taints = node.spec?.taints ?? [];
  const kept = taints.filter((taint) => !isManaged(taint) || keys.includes(taint.key));
  const added = keys
    .filter((key) => !taints.some((taint) => taint.key === key && taint.effect === effect))
    .map((key) => ({ key, effect, timeAdded: now }));
  return added.length === 0 && kept.length === taints.length ? undefined : [...kept, ...added];
}

function isReadinessTaint({ key, effect }: Taint): boolean {
  return effect === "NoExecute" && (key === NOT_READY || key === UNREACHABLE);
}
