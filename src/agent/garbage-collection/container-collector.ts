/** Removes exited containers beyond the limit of the node, oldest first: `--maximum-dead-containers`. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { RateHistory, secondsUntil } from "../forecast/rate-history.ts";
import { removeLogs } from "../logs/log-rotation.ts";
import type { StateName } from "../pods/states/pod-state.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";

export interface CollectedPod {
  readonly pod?: Pod;
  /** The containers of a terminated pod do not start again. */
  readonly stateName?: StateName;
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

interface RemovableContainer extends ObservedContainer {
  readonly podUid: string;
}

/** Name in the history: containers that may be added before the limit is exceeded. */
const HEADROOM = "headroom";

export interface DeadContainer {
  readonly id: string;
  readonly name: string;
  readonly podUid: string;
}

export interface ContainerForecast {
  /** Exited containers kept on the node; negative: all. */
  readonly limit: number;
  /** Exited containers that could be removed. */
  readonly count: number;
  /** The time until the limit is exceeded: 0 when it is already, undefined when it is not at the present rate. */
  readonly inSeconds: number | undefined;
  /** The containers that would be removed first. */
  readonly next: readonly DeadContainer[];
}

/** The window in which the growth of the number of exited containers is measured. */
const HISTORY = { windowMs: 600_000, spacingMs: 30_000 };
/** Containers in a forecast when no more than that exceed the limit. */
const NEXT_MAX = 3;

export class ContainerCollector {
  readonly #options: ContainerCollectorOptions;
  /** The number of containers that are missing to the limit. */
  readonly #history = new RateHistory(HISTORY);

  constructor(options: ContainerCollectorOptions) {
    this.#options = options;
  }

  get isEnabled(): boolean {
    return this.#options.deadMax >= 0;
  }

  /** Rejects when the runtime does. */
  async collect(): Promise<void> {
    if (!this.isEnabled) return;
    this.#observe();
    await this.#remove(selectForRemoval(this.#listUnits(this.#options.minAgeMs), this.#options.deadMax));
  }

  /**
   * Removes all exited containers that nothing needs, also young ones, and all of pods that have ended, whose writable
   * layers take space. Resolves with their number.
   */
  async removeUnused(): Promise<number> {
    const ended = [...this.#options.pods()].filter(({ stateName }) => stateName === "terminated");
    return await this.#remove([
      ...ended.flatMap((each) => listExited(each)),
      ...selectForRemoval(this.#listUnits(0), 0).filter(
        ({ podUid }) => !ended.some(({ pod }) => pod?.metadata?.uid === podUid),
      ),
    ]);
  }

  forecast(): ContainerForecast {
    const { deadMax: limit, minAgeMs } = this.#options;
    const count = this.#observe();
    // Counted when there are more than the limit.
    const inSeconds = limit < 0 ? undefined : secondsUntil(limit + 1 - count, this.#history.rateOf(HEADROOM));
    const kept = count > limit ? limit : Math.max(0, count - NEXT_MAX);
    const removed = limit < 0 ? [] : selectForRemoval(this.#listUnits(minAgeMs), kept);
    const next = removed.map(({ id, name, podUid }) => ({ id, name, podUid }));
    return { limit, count, inSeconds, next };
  }

  /** Records the number of containers that can be removed. */
  #observe(): number {
    const { deadMax, minAgeMs, clock } = this.#options;
    const count = this.#listUnits(minAgeMs).flat().length;
    this.#history.add(clock.monotonic(), new Map([[HEADROOM, deadMax - count]]));
    return count;
  }

  #listUnits(minAgeMs: number): readonly (readonly RemovableContainer[])[] {
    const since = this.#options.clock.now() - minAgeMs;
    return [...this.#options.pods()].flatMap((each) => listRemovable(each, since));
  }

  /** A container that cannot be removed keeps no other. Rejects when none can. */
  async #remove(containers: readonly RemovableContainer[]): Promise<number> {
    const { log, runtime } = this.#options;
    let removed = 0;
    const failures: unknown[] = [];
    for (const { id, name, logPath } of containers) {
      log.info("Removing dead container", { container: name, containerID: id });
      try {
        // The log first: without its container, an agent that restarts does not find it.
        if (logPath !== "") await removeLogs(logPath);
        await runtime.removeContainer({ containerId: id });
        removed++;
      } catch (error) {
        log.error("Failed to remove container", error, { container: name, containerID: id });
        failures.push(error);
      }
    }
    if (removed === 0 && failures.length > 0) throw failures[0];
    return removed;
  }
}

/** As kubelet: removes an equal share of the runs of each container first, then the oldest runs of all. */
function selectForRemoval(
  units: readonly (readonly RemovableContainer[])[],
  max: number,
): readonly RemovableContainer[] {
  const count = units.reduce((sum, unit) => sum + unit.length, 0);
  if (count <= max) return [];
  const share = Math.max(1, Math.floor(max / units.length));
  const removed = units.flatMap((unit) => unit.slice(share));
  const left = units.flatMap((unit) => unit.slice(0, share)).sort((a, b) => b.createdAt - a.createdAt);
  removed.push(...left.slice(Math.max(0, max)));
  return removed.slice(0, Math.max(0, count - max));
}

/**
 * The exited runs of each container, newest first, without those that are too young and the newest run: the container's
 * state, the number of its restarts and its log are read from it.
 */
function listRemovable(collected: CollectedPod, since: number): readonly (readonly RemovableContainer[])[] {
  const byName = Map.groupBy(listRuns(collected), ({ name }) => name);
  return [...byName.values()].flatMap((runs) => {
    const newest = runs.toSorted((a, b) => b.createdAt - a.createdAt);
    const removable = newest.slice(1).filter(({ state, createdAt }) => state === "exited" && createdAt < since);
    return removable.length === 0 ? [] : [removable];
  });
}

function listExited(collected: CollectedPod): readonly RemovableContainer[] {
  return listRuns(collected).filter(({ state }) => state === "exited");
}

function listRuns({ pod, observation }: CollectedPod): readonly RemovableContainer[] {
  const podUid = pod?.metadata?.uid ?? "";
  return observation.containers.map((each) => ({ ...each, podUid }));
}
