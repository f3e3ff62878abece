/** Evaluates the conditions that a recorded case waits for. */
import type { Condition, Conditions, ContainerJson, EventJson, PodStatusJson } from "./cases.ts";

/** The observed state of a pod. */
export interface Observation {
  readonly exists: boolean;
  /** Whether the pod existed and is deleted. */
  readonly gone: boolean;
  readonly status: PodStatusJson;
  readonly events: readonly EventJson[];
  /** The output of a container, all runs in order. */
  logOf(container: string): string;
  readonly seconds: number;
}

export function holds(conditions: Conditions | undefined, seen: Observation): boolean {
  if (conditions === undefined) return true;
  const all: readonly Condition[] = Array.isArray(conditions) ? conditions : [conditions];
  return all.every((condition) =>
    Object.entries(condition).every(
      ([name, value]) => checks[name as keyof Condition]?.(seen, value as never) ?? false,
    ),
  );
}

type Checks = { readonly [K in keyof Condition]-?: (seen: Observation, value: NonNullable<Condition[K]>) => boolean };

const checks: Checks = {
  phase: ({ status }, phase) => status.phase === phase,
  ready: ({ status }, ready) => isCondition(status, "Ready", "True") === ready,
  cond: ({ status }, [type, wanted]) => isCondition(status, type, wanted),
  running: (seen, name) => containerOf(seen, name)?.state.running !== undefined,
  started: (seen, name) => containerOf(seen, name)?.started === true,
  terminated: (seen, name) => containerOf(seen, name)?.state.terminated !== undefined,
  lastTerminated: (seen, name) => containerOf(seen, name)?.lastState.terminated !== undefined,
  waiting: (seen, [name, reason]) => containerOf(seen, name)?.state.waiting?.reason === reason,
  restarts: (seen, [name, least]) => (containerOf(seen, name)?.restartCount ?? 0) >= least,
  reason: ({ status }, reason) => status.reason === reason,
  event: ({ events }, wanted) => {
    const [reason, least] = typeof wanted === "string" ? [wanted, 1] : wanted;
    return events.filter((event) => event.reason === reason).reduce((sum, { count }) => sum + count, 0) >= least;
  },
  log: (seen, [container, text]) => seen.logOf(container).includes(text),
  present: ({ exists }, present) => exists === present,
  gone: (seen, gone) => seen.gone === gone,
  s: ({ seconds }, least) => seconds >= least,
};

function isCondition(status: PodStatusJson, type: string, wanted: string): boolean {
  return status.conditions?.some((each) => each.type === type && each.status === wanted) ?? false;
}

export function containersOf(status: PodStatusJson): readonly ContainerJson[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
}

function containerOf({ status }: Observation, name: string): ContainerJson | undefined {
  return containersOf(status).find((container) => container.name === name);
}
