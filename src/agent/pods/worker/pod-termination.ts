/** Whether and how a pod ends: the first request sets the reason, later ones may only shorten the grace period. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { graceSeconds, isDeleted, isTerminal } from "../pod-fields.ts";
import type { WaitingReason } from "../status/container-status.ts";

/** Why and how a pod ends. */
export interface Termination {
  /** Seconds; the pod's own when undefined. */
  readonly graceSeconds: number | undefined;
  /** Set when the agent itself ends the pod. */
  readonly failure: WaitingReason | undefined;
  /** Message of the condition DisruptionTarget; set when the pod ends for a reason outside of it. */
  readonly disruption?: string | undefined;
}

export class PodTermination {
  #termination: Termination | undefined;

  /** Undefined: the pod is not to end. */
  get current(): Termination | undefined {
    return this.#termination;
  }

  /** True: the current state of the worker must be interrupted. */
  request(termination: Termination): boolean {
    const current = this.#termination;
    const isSame = current !== undefined && current.graceSeconds === termination.graceSeconds;
    const failure = current?.failure ?? termination.failure;
    this.#termination = { ...termination, failure, disruption: current?.disruption ?? termination.disruption };
    return !isSame;
  }

  /** Compares a new version of the pod with the one before. True: as above. */
  observe(pod: Pod, before: Pod | undefined): boolean {
    const isOver = isTerminal(pod) && this.#termination === undefined && this.request(restoreTermination(pod));
    if (!isDeleted(pod)) return isOver;
    const grace = graceSeconds(pod);
    const isSooner = before === undefined || !isDeleted(before) || grace < graceSeconds(before);
    return (isSooner && this.request({ graceSeconds: grace, failure: this.#termination?.failure })) || isOver;
  }
}

/** Of a pod that has ended before this agent started: what its status has is not reported differently now. */
function restoreTermination({ status = {} }: Pod): Termination {
  const { phase, reason = "", message = "", conditions = [] } = status;
  const failure = phase === "Failed" && reason !== "" ? { reason, message } : undefined;
  const disruption = conditions.find(
    (each) => each.type === "DisruptionTarget" && each.reason === "TerminationByKubelet",
  );
  return { graceSeconds: undefined, failure, disruption: disruption?.message };
}
