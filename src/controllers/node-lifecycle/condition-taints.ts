/** The taints by which a node's conditions keep pods away (`NoSchedule`) or drive them off (`NoExecute`). */
import type { Node, Taint } from "../../api/core/node/schema.ts";

const PREFIX = "node.kubernetes.io/";
export const NOT_READY = `${PREFIX}not-ready`;
export const UNREACHABLE = `${PREFIX}unreachable`;
const UNSCHEDULABLE = `${PREFIX}unschedulable`;

/** The taint's key by what a condition says. */
const BY_CONDITION: ReadonlyMap<string, string> = new Map([
  ["Ready=False", NOT_READY],
  ["Ready=Unknown", UNREACHABLE],
  ["MemoryPressure=True", `${PREFIX}memory-pressure`],
  ["DiskPressure=True", `${PREFIX}disk-pressure`],
  ["NetworkUnavailable=True", `${PREFIX}network-unavailable`],
  ["PIDPressure=True", `${PREFIX}pid-pressure`],
]);
/** The last is how the project's own tools may spell what new nodes start with. */
const CONDITION_KEYS = new Set([...BY_CONDITION.values(), UNSCHEDULABLE, "node.svc.io/not-ready"]);

/** The status of the node's `Ready` condition. */
export function readyStatus({ status }: Node): string | undefined {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status;
}

/** Whether the node has a taint that drives pods off since it is not ready. */
export function isDriving({ spec }: Node): boolean {
  return (spec?.taints ?? []).some(isOfReadiness);
}

/**
 * The taints as they are to be, undefined when they are; those of others stay. `drives`: if the node is not ready, its
 * pods are to be driven off.
 */
export function wantedTaints(node: Node, drives: boolean, now: string): readonly Taint[] | undefined {
  const taints = node.spec?.taints ?? [];
  const wanted: { readonly key: string; readonly effect: Taint["effect"] }[] = [];
  for (const { type, status } of node.status?.conditions ?? []) {
    const key = BY_CONDITION.get(`${type}=${status}`);
    if (key !== undefined) wanted.push({ key, effect: "NoSchedule" });
  }
  if (node.spec?.unschedulable === true) wanted.push({ key: UNSCHEDULABLE, effect: "NoSchedule" });
  const readiness = BY_CONDITION.get(`Ready=${readyStatus(node)}`);
  if (readiness !== undefined && drives) wanted.push({ key: readiness, effect: "NoExecute" });

  const isWanted = (taint: Taint): boolean =>
    wanted.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const kept = taints.filter((taint) => !isOwn(taint) || isWanted(taint));
  const added = wanted
    .filter(({ key, effect }) => !taints.some((taint) => taint.key === key && taint.effect === effect))
    .map((taint) => ({ ...taint, timeAdded: now }));
  return added.length === 0 && kept.length === taints.length ? undefined : [...kept, ...added];
}

function isOwn(taint: Taint): boolean {
  return taint.effect === "NoSchedule" ? CONDITION_KEYS.has(taint.key) : isOfReadiness(taint);
}

function isOfReadiness({ key, effect }: Taint): boolean {
  return effect === "NoExecute" && (key === NOT_READY || key === UNREACHABLE);
}
