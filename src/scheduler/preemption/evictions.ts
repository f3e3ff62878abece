/** Deletes the victims of preemptions, in the background. */
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Nominator } from "../cache/nominator.ts";
import type { PodInfo } from "../cache/pod-info.ts";
import { patchPodStatus } from "../pod-status.ts";
import type { Victims } from "./victims.ts";

export interface EvictionsDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nominator: Nominator;
  readonly signal: AbortSignal;
  readonly recordPreempted: (victim: Pod, preemptor: Pod, nodeName: string) => void;
  /** Called with the number of victims of each preemption. */
  readonly onEvict: (count: number) => void;
  /** Called when the victims of a preemption are deleted or that failed, with the time that it took. */
  readonly onEvicted?: ((isSuccess: boolean, milliseconds: number) => void) | undefined;
  /** Ends the binding of a victim that is not bound yet; returns whether there was one. */
  readonly rejectBinding: (uid: string) => boolean;
  /** Schedules a pod that is not nominated any more. */
  readonly activate: (uid: string) => void;
  /** Schedules a pod later, whose victims could not be deleted. */
  readonly retryLater: (uid: string) => void;
}

export class Evictions {
  readonly #deps: EvictionsDeps;
  /** The pods whose victims are being deleted. */
  readonly #preempting = new Set<string>();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: EvictionsDeps) {
    this.#deps = deps;
  }

  isPreempting(uid: string): boolean {
    return this.#preempting.has(uid);
  }

  /** Resolves when the victims are deleted, or the pod is retried since that failed. */
  evict(pod: PodInfo, victims: Victims): Promise<void> {
    this.#preempting.add(pod.uid);
    this.#deps.onEvict(victims.pods.length);
    const { clock, onEvicted } = this.#deps;
    const beganAt = clock.monotonic();
    const running = this.#evictAll(pod, victims)
      .then(() => onEvicted?.(true, clock.monotonic() - beganAt))
      .catch((error: unknown) => {
        onEvicted?.(false, clock.monotonic() - beganAt);
        if (this.#deps.signal.aborted) return;
        this.#deps.log.error("Failed to preempt pods", error, { preemptor: pod.key, node: victims.node.name });
        this.#preempting.delete(pod.uid);
        this.#deps.retryLater(pod.uid);
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Resolves when all evictions have ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #evictAll(pod: PodInfo, { node, pods }: Victims): Promise<void> {
    for (const nominated of [...(this.#deps.nominator.podsFor(node.name)?.values() ?? [])]) {
      if (nominated.priority < pod.priority) await this.#clearNomination(nominated);
    }
    const last = pods.at(-1);
    await Promise.all(pods.slice(0, -1).map((victim) => this.#evictOne(pod, victim, node.name)));
    // The deletion of the last victim is the event that retries the pod.
    this.#preempting.delete(pod.uid);
    if (last === undefined) return;
    const isDeleted = await this.#evictOne(pod, last, node.name);
    // The others may have gone before, and no event retries the pod any more.
    if (!isDeleted) this.#deps.activate(pod.uid);
  }

  /** A pod of a lower priority may not fit there any more. */
  async #clearNomination(nominated: PodInfo): Promise<void> {
    this.#deps.nominator.delete(nominated.uid);
    await patchPodStatus(this.#deps, nominated.pod, { nominatedNodeName: null });
    this.#deps.activate(nominated.uid);
  }

  /** Returns false for a victim that does not exist any more. */
  async #evictOne(
    preemptor: PodInfo,
    { pod: victim, uid, name, namespace }: PodInfo,
    nodeName: string,
  ): Promise<boolean> {
    const { client, clock, recordPreempted, rejectBinding, signal } = this.#deps;
    if (!rejectBinding(uid)) {
      const { schedulerName = "default-scheduler" } = preemptor.pod.spec ?? {};
      const condition = {
        type: "DisruptionTarget",
        status: "True",
        reason: "PreemptionByScheduler",
        message: `${schedulerName}: preempting to accommodate a higher priority pod`,
        lastTransitionTime: formatTime(clock.now()),
      };
      try {
        await patchPodStatus(this.#deps, victim, { conditions: [condition] });
        await client.delete(podKind, { name, namespace }, {}, signal);
      } catch (error) {
        if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
        return false;
      }
    }
    recordPreempted(victim, preemptor.pod, nodeName);
    return true;
  }
}
