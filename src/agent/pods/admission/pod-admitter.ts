/** Admits pods one after the other, so that no two of them are given the same room. */
import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { PodEventRecorder } from "../pod-events.ts";
import { graceSeconds, isCritical, isTerminal, podUid } from "../pod-fields.ts";
import { getPodResource, parseResource } from "../resources/pod-resources.ts";
import type { WaitingReason } from "../status/container-status.ts";
import type { Termination } from "../worker/pod-termination.ts";
import { type AdmissionFailure, type AdmissionInput, findAdmissionFailures } from "./admission-checks.ts";
import { selectVictims } from "./preemption.ts";

export interface PodAdmitterOptions extends Pick<AdmissionInput, "allowedSysctls" | "appArmor"> {
  /** The node as its object says, once that is known. */
  readonly node: () => Promise<Node>;
  readonly pressures: () => readonly string[];
  /** Every pod that something of may still run, whether admitted or not. */
  readonly pods: () => readonly Pod[];
  /** Ends a pod; resolves when nothing of it runs any more. */
  readonly terminate: (uid: string, termination: Termination) => Promise<void>;
  readonly events: PodEventRecorder;
  readonly clock: Clock;
}

/** Times its grace, a pod may take to make room. */
const TERMINATION_TIMEOUT_FACTOR = 1.5;
const TERMINATION_TIMEOUT_MS_MIN = 10_000;

export class PodAdmitter {
  readonly #options: PodAdmitterOptions;
  /** Uids; only those of pods that are still there count, others are dropped at the next decision. */
  readonly #admitted = new Set<string>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: PodAdmitterOptions) {
    this.#options = options;
  }

  /** Why the node does not take the pod; undefined when it does, and from then on counts it. */
  admit(pod: Pod): Promise<WaitingReason | undefined> {
    const turn = this.#turn.then(() => this.#decide(pod));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** The pod runs already: an agent before this one admitted it. */
  adopt(pod: Pod): void {
    this.#admitted.add(podUid(pod));
  }

  /** Why the node cannot give a pod that it runs what its new version asks for; undefined when it does, at once. */
  resize(pod: Pod): Promise<WaitingReason | undefined> {
    const turn = this.#turn.then(() => this.#decideResize(pod));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #decide(pod: Pod): Promise<WaitingReason | undefined> {
    const found = await this.#obstacles(pod);
    const rejection = isCritical(pod) ? await this.#makeRoom(pod, found) : found[0];
    if (rejection === undefined) this.#admitted.add(podUid(pod));
    return rejection && { reason: rejection.reason, message: rejection.message };
  }

  async #decideResize(pod: Pod): Promise<WaitingReason | undefined> {
    const { allocatable = {} } = (await this.#options.node()).status ?? {};
    for (const name of ["memory", "cpu"]) {
      const requested = getPodResource(pod, "requests", name);
      const capacity = parseResource(name, allocatable[name]);
      if (requested <= capacity) continue;
      const figures = `${name}, requested: ${requested}, capacity: ${capacity}`;
      return { reason: "Infeasible", message: `Node didn't have enough capacity: ${figures}` };
    }
    const [first] = await this.#obstacles(pod);
    return first && { reason: "Deferred", message: first.message };
  }

  async #obstacles(pod: Pod): Promise<readonly AdmissionFailure[]> {
    const { allowedSysctls, appArmor, pressures } = this.#options;
    const node = await this.#options.node();
    return findAdmissionFailures({
      pod,
      others: this.#others(pod),
      node,
      pressures: pressures(),
      allowedSysctls,
      appArmor,
    });
  }

  /** Pods that have a status of the node's were admitted before the agent started. */
  #others(pod: Pod): readonly Pod[] {
    const pods = this.#options.pods();
    const uids = new Set(pods.map(podUid));
    for (const uid of this.#admitted) if (!uids.has(uid)) this.#admitted.delete(uid);
    return pods.filter(
      (each) =>
        podUid(each) !== podUid(pod) &&
        !isTerminal(each) &&
        (this.#admitted.has(podUid(each)) || each.status?.startTime !== undefined),
    );
  }

  /** Whatever keeps a pod from ending must not keep all others from being looked at. */
  async #patiently(victim: Pod, ended: Promise<void>): Promise<void> {
    const { clock, events } = this.#options;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const limitMs = Math.max(TERMINATION_TIMEOUT_MS_MIN, graceSeconds(victim) * 1000 * TERMINATION_TIMEOUT_FACTOR);
    const timer = clock.timer(limitMs, () => {
      const text = "Container runtime did not kill the pod within specified grace period.";
      events.recordPodEvent(victim, "Warning", "ExceededGracePeriod", text);
      resolve();
    });
    await Promise.race([ended, late]).finally(() => timer.cancel());
  }

  /** For want of room alone no critical pod is turned away: others end for it. */
  async #makeRoom(pod: Pod, found: readonly AdmissionFailure[]): Promise<WaitingReason | undefined> {
    const fixed = found.find(({ shortage }) => shortage === undefined);
    if (fixed !== undefined || found.length === 0) return fixed;
    const { events, terminate: end } = this.#options;
    const shortages = found.flatMap(({ shortage }) => (shortage === undefined ? [] : [shortage]));
    try {
      for (const victim of selectVictims(pod, this.#others(pod), shortages)) {
        const message = "Preempted in order to admit critical pod";
        events.recordPodEvent(victim, "Warning", "Preempting", message);
        const disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";
        const termination = { graceSeconds: undefined, failure: { reason: "Preempting", message }, disruption };
        await this.#patiently(victim, end(podUid(victim), termination));
      }
      return undefined;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const why = `preemption: error finding a set of pods to preempt: ${text}`;
      const message = `Unexpected error while attempting to recover from admission failure: ${why}`;
      return { reason: "UnexpectedAdmissionError", message };
    }
  }
}
