/** Admits pods one after the other, so that no two of them get the same capacity. */
import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { ResourceManagers } from "../../resource-managers/resource-managers.ts";
import type { PodEventRecorder } from "../pod-events.ts";
import { graceSeconds, isCritical, isDeleted, isTerminal, podUid } from "../pod-fields.ts";
import { getPodResource, parseResource } from "../resources/pod-resources.ts";
import type { WaitingReason } from "../status/container-status.ts";
import type { Termination } from "../worker/pod-termination.ts";
import {
  type AdmissionFailure,
  type AdmissionInput,
  findAdmissionFailures,
  findEarlyFailure,
} from "./admission-checks.ts";
import { selectVictims } from "./preemption.ts";

export interface PodAdmitterOptions extends Pick<AdmissionInput, "allowedSysctls" | "appArmor"> {
  /** The Node object, once the API server has it. */
  readonly node: () => Promise<Node>;
  readonly pressures: () => readonly string[];
  /** Whether the machine shuts down. */
  readonly isShuttingDown: () => boolean;
  /** Pods whose containers may still run, admitted or not. */
  readonly pods: () => readonly Pod[];
  /** Terminates a pod; resolves when no container of it runs any more. */
  readonly terminate: (uid: string, termination: Termination) => Promise<void>;
  readonly events: PodEventRecorder;
  /** A pod has ended for a critical one, which lacked this resource first. */
  readonly onPreempted: (resource: string) => void;
  readonly clock: Clock;
  /** Undefined: pods get no CPUs, memory or devices of their own. */
  readonly resources?: Pick<ResourceManagers, "admit" | "findResizeProblem" | "withAllocatedDevices"> | undefined;
}

/** A preempted pod may take its grace period times this factor, and at least the minimum. */
const TERMINATION_TIMEOUT_FACTOR = 1.5;
const TERMINATION_TIMEOUT_MS_MIN = 10_000;

const SHUTTING_DOWN: WaitingReason = {
  reason: "NodeShutdown",
  message: "Pod was rejected as the node is shutting down.",
};

export class PodAdmitter {
  readonly #options: PodAdmitterOptions;
  /** Uids; the next decision drops those of pods that no longer exist. */
  readonly #admitted = new Set<string>();
  /** The last decision; the next one follows it. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: PodAdmitterOptions) {
    this.#options = options;
  }

  /**
   * Why the node rejects the pod; undefined when it admits the pod, whose requests count from then on.
   * `runtimeProblem`: what the runtime lacks for the pod.
   */
  admit(pod: Pod, runtimeProblem?: WaitingReason): Promise<WaitingReason | undefined> {
    return this.#enqueue(() => this.#decide(pod, runtimeProblem));
  }

  /**
   * An agent before this one admitted the pod, which runs already: its resources are allocated as before. Why that is
   * not possible; undefined when it is.
   */
  adopt(pod: Pod): Promise<WaitingReason | undefined> | undefined {
    const { resources } = this.#options;
    this.#admitted.add(podUid(pod));
    if (resources === undefined || isTerminal(pod) || isDeleted(pod)) return undefined;
    return this.#enqueue(() => resources.admit(pod));
  }

  /** Why the node cannot allocate the resources of a running pod's new version; undefined when it can, at once. */
  resize(pod: Pod): Promise<WaitingReason | undefined> {
    return this.#enqueue(() => this.#decideResize(pod));
  }

  #enqueue<T>(decide: () => Promise<T>): Promise<T> {
    const decision = this.#last.then(decide);
    this.#last = decision.catch(() => undefined);
    return decision;
  }

  async #decide(pod: Pod, runtimeProblem: WaitingReason | undefined): Promise<WaitingReason | undefined> {
    if (this.#options.isShuttingDown()) return SHUTTING_DOWN;
    const input = { ...(await this.#makeInput(pod)), runtimeProblem };
    const first = findEarlyFailure(input) ?? (await this.#options.resources?.admit(pod));
    const failures = first === undefined ? findAdmissionFailures(input) : [first];
    const rejection = isCritical(pod) ? await this.#preempt(pod, failures) : failures[0];
    if (rejection === undefined) this.#admitted.add(podUid(pod));
    return rejection && { reason: rejection.reason, message: rejection.message };
  }

  async #decideResize(pod: Pod): Promise<WaitingReason | undefined> {
    const problem = this.#options.resources?.findResizeProblem(pod);
    if (problem !== undefined) return problem;
    const { allocatable = {} } = (await this.#options.node()).status ?? {};
    for (const name of ["memory", "cpu"]) {
      const requested = getPodResource(pod, "requests", name);
      const capacity = parseResource(name, allocatable[name]);
      if (requested <= capacity) continue;
      const figures = `${name}, requested: ${requested}, capacity: ${capacity}`;
      return { reason: "Infeasible", message: `Node didn't have enough capacity: ${figures}` };
    }
    const [first] = findAdmissionFailures(await this.#makeInput(pod));
    return first && { reason: "Deferred", message: first.message };
  }

  async #makeInput(pod: Pod): Promise<AdmissionInput> {
    const { allowedSysctls, appArmor, pressures } = this.#options;
    const node = await this.#options.node();
    const { resources } = this.#options;
    return {
      pod,
      others: this.#otherPods(pod),
      node: resources?.withAllocatedDevices(node) ?? node,
      pressures: pressures(),
      allowedSysctls,
      appArmor,
    };
  }

  /** Pods that have a start time were admitted before the agent started. */
  #otherPods(pod: Pod): readonly Pod[] {
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

  /** False when a timeout passed first: a pod that does not end must not block the admission of all others. */
  async #waitForTermination(victim: Pod, ended: Promise<void>): Promise<boolean> {
    const { clock, events } = this.#options;
    const { promise: timeout, resolve } = Promise.withResolvers<boolean>();
    const limitMs = Math.max(TERMINATION_TIMEOUT_MS_MIN, graceSeconds(victim) * 1000 * TERMINATION_TIMEOUT_FACTOR);
    const timer = clock.timer(limitMs, () => {
      const text = "Container runtime did not kill the pod within specified grace period.";
      events.recordPodEvent(victim, "Warning", "ExceededGracePeriod", text);
      resolve(false);
    });
    return await Promise.race([ended.then(() => true), timeout]).finally(() => timer.cancel());
  }

  /** Terminates other pods for a critical pod that only lacks capacity. */
  async #preempt(pod: Pod, failures: readonly AdmissionFailure[]): Promise<WaitingReason | undefined> {
    const other = failures.find(({ shortage }) => shortage === undefined);
    if (other !== undefined || failures.length === 0) return other;
    const { events, terminate, onPreempted } = this.#options;
    const shortages = failures.flatMap(({ shortage }) => (shortage === undefined ? [] : [shortage]));
    try {
      for (const victim of selectVictims(pod, this.#otherPods(pod), shortages)) {
        const message = "Preempted in order to admit critical pod";
        events.recordPodEvent(victim, "Warning", "Preempting", message);
        const disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";
        const termination = { graceSeconds: undefined, failure: { reason: "Preempting", message }, disruption };
        const hasEnded = await this.#waitForTermination(victim, terminate(podUid(victim), termination));
        if (hasEnded) onPreempted(shortages[0]?.resource ?? "");
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
