/** Removes exited containers beyond the limit of the node, oldest first: `--maximum-dead-containers`. */
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { removeLogs } from "../logs/log-rotation.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";

export interface CollectedPod {
  readonly observation: Observation;
}

export interface ContainerCollectorOptions {
  readonly runtime: Pick<Runtime, "removeContainer">;
  readonly pods: () => Iterable<CollectedPod>;
  /** Exited containers kept on the node; negative keeps all. */
  readonly deadMax: number;
  /** Containers that were created later than this are kept. */
  readonly minAgeMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

export class ContainerCollector {
  readonly #options: ContainerCollectorOptions;

  constructor(options: ContainerCollectorOptions) {
    this.#options = options;
  }

  get isEnabled(): boolean {
    return this.#options.deadMax >= 0;
  }

  /** Rejects when the runtime does. */
  async collect(): Promise<void> {
    if (!this.isEnabled) return;
    await this.#removeBeyond(this.#options.deadMax, this.#options.minAgeMs);
  }

  /** Removes all exited containers that nothing needs, also young ones. Resolves with their number. */
  async removeUnused(): Promise<number> {
    return await this.#removeBeyond(0, 0);
  }

  /** As kubelet: first every container gives up an equal share of its runs, then the oldest of all go. */
  async #removeBeyond(max: number, minAgeMs: number): Promise<number> {
    const since = this.#options.clock.now() - minAgeMs;
    const runs = [...this.#options.pods()].map(({ observation }) => listRemovable(observation, since));
    const units = runs.flat();
    const count = units.reduce((sum, unit) => sum + unit.length, 0);
    if (count <= max) return 0;
    const share = Math.max(1, Math.floor(max / units.length));
    const doomed = units.flatMap((unit) => unit.slice(share));
    const left = units.flatMap((unit) => unit.slice(0, share)).sort((a, b) => b.createdAt - a.createdAt);
    doomed.push(...left.slice(Math.max(0, max)));
    let removed = 0;
    for (const { id, name, logPath } of doomed.slice(0, Math.max(0, count - max))) {
      this.#options.log.info("Removing dead container", { container: name, containerID: id });
      await this.#options.runtime.removeContainer({ containerId: id });
      if (logPath !== "") await removeLogs(logPath);
      removed++;
    }
    return removed;
  }
}

/**
 * The exited runs of each container, newest first, without those that are too young and the newest run: the container's
 * state, the number of its restarts and its log are read from it.
 */
function listRemovable({ containers }: Observation, since: number): readonly (readonly ObservedContainer[])[] {
  const byName = Map.groupBy(containers, ({ name }) => name);
  return [...byName.values()].flatMap((runs) => {
    const newest = runs.toSorted((a, b) => b.createdAt - a.createdAt);
    const removable = newest.slice(1).filter(({ state, createdAt }) => state === "exited" && createdAt < since);
    return removable.length === 0 ? [] : [removable];
  });
}
