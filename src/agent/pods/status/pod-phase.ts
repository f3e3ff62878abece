import type { ContainerStateTerminated, ContainerStatus } from "../../../api/core/container/status.ts";
import type { Pod, PodStatus } from "../../../api/core/pod/schema.ts";
import { initContainers, isSidecar, isStatic, restartPolicy } from "../pod-fields.ts";

export type PodPhase = NonNullable<PodStatus["phase"]>;

export interface PhaseInput {
  readonly pod: Pod;
  /** All containers have been stopped for good. */
  readonly isTerminated: boolean;
  /** The last published status: conditions keep their transition times, and a terminal phase is final. */
  readonly previous: PodStatus | undefined;
}

/** From the counts that Kubernetes uses: containers that wait for their first run, run, have stopped, and how. */
export function computePhase(
  { pod, previous, isTerminated }: PhaseInput,
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
): PodPhase {
  const policy = restartPolicy(pod);
  const specs = initContainers(pod);
  const isSidecarAt = (index: number): boolean => specs[index] !== undefined && isSidecar(specs[index]);
  const regular = inits.filter((_, index) => !isSidecarAt(index));
  const sidecars = inits.filter((_, index) => isSidecarAt(index));
  if (policy === "Never" && regular.some((each) => (lastTermination(each)?.exitCode ?? 0) !== 0)) return "Failed";
  const initialized = previous?.conditions?.some(({ type, status }) => type === "Initialized" && status === "True");
  const pending = regular.some((each) => lastTermination(each) === undefined);
  const starting = sidecars.some((each) => each.started !== true && lastTermination(each) === undefined);
  if (pending || (starting && initialized !== true)) return "Pending";
  if ([...sidecars, ...apps].some((each) => each.state?.waiting !== undefined && lastTermination(each) === undefined)) {
    return "Pending";
  }
  if ([...sidecars, ...apps].some((each) => each.state?.running !== undefined)) return "Running";
  const ends = apps.map(lastTermination);
  if (ends.length === 0 || ends.some((each) => each === undefined)) return "Pending";
  const succeeded = apps.every((each) => each.state?.terminated?.exitCode === 0);
  // No container of a terminated pod restarts. The phase of a static pod is not final.
  if (isTerminated && !isStatic(pod)) return succeeded ? "Succeeded" : "Failed";
  if (policy === "Always") return "Running";
  if (succeeded) return "Succeeded";
  return policy === "Never" ? "Failed" : "Running";
}

/** The end of the last run; a container that waits for its next run counts as stopped. */
function lastTermination({ state, lastState }: ContainerStatus): ContainerStateTerminated | undefined {
  if (state?.running !== undefined) return undefined;
  return state?.terminated ?? lastState?.terminated;
}

/** The status shows a terminal phase only when all containers have stopped, and keeps it. */
export function choosePublishedPhase(computed: PodPhase, input: PhaseInput): PodPhase {
  const before = input.previous?.phase;
  if (before === "Succeeded" || before === "Failed") return before;
  const terminal = computed === "Succeeded" || computed === "Failed";
  if (input.isTerminated) return terminal || isStatic(input.pod) ? computed : "Failed";
  return terminal ? (before ?? "Pending") : computed;
}
