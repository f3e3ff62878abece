/** `--runonce`: the agent starts the pods of the manifests and exits once they all run or have run. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";

export interface RunOnceOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Undefined until every source has been read. */
  readonly pods: () => readonly Pod[] | undefined;
  /** What is wrong with the manifests, one line each. */
  readonly problems: () => readonly string[];
}

const CHECK_INTERVAL_MS = 100;
/** Images may have to be pulled. */
const TIMEOUT_MS = 600_000;

export class RunOnce {
  /** By uid; bounded by the manifests. */
  readonly #phases = new Map<string, PodStatus["phase"]>();

  setPhase(pod: Pod, { phase }: PodStatus): void {
    this.#phases.set(podUid(pod), phase);
  }

  /** Resolves when all pods run or have succeeded. Rejects with the names of those that failed or did not start. */
  async wait({ clock, signal, pods, problems }: RunOnceOptions): Promise<void> {
    const until = clock.monotonic() + TIMEOUT_MS;
    while (true) {
      const all = pods();
      const open = all?.filter(
        (pod) => !["Running", "Succeeded", "Failed"].includes(this.#phases.get(podUid(pod)) ?? ""),
      );
      if (open?.length === 0 || clock.monotonic() > until) {
        const failed = (all ?? []).filter((pod) => open?.includes(pod) || this.#phases.get(podUid(pod)) === "Failed");
        const found = [...failed.map((pod) => `pod ${podNamespace(pod)}/${podName(pod)} does not run`), ...problems()];
        if (all === undefined) found.push("the manifests cannot be read");
        if (found.length > 0) throw new Error(`Cannot run all pods: ${found.join("; ")}`);
        return;
      }
      await clock.sleep(CHECK_INTERVAL_MS, signal);
    }
  }
}
