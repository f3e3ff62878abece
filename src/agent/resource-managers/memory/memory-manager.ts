/** Reserves memory of NUMA nodes for containers of Guaranteed pods. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { HintProvider, ResourceHints } from "../topology/topology-hint.ts";
import type { MemoryBlock, MemoryState } from "./memory-state.ts";
import type { StaticMemoryPolicy } from "./static-memory-policy.ts";

export interface MemoryManagerOptions {
  readonly policy: StaticMemoryPolicy;
  readonly state: MemoryState;
  /** Undefined until all sources of pods have been read: nothing is released before. */
  readonly activePods: () => readonly Pod[] | undefined;
  readonly log: Logger;
}

export class MemoryManager implements HintProvider {
  readonly #options: MemoryManagerOptions;

  constructor(options: MemoryManagerOptions) {
    this.#options = options;
  }

  listAllocatable(): readonly MemoryBlock[] {
    return this.#options.policy.listAllocatable();
  }

  getTopologyHints(pod: Pod, container: Container): ResourceHints {
    this.removeStale();
    return this.#options.policy.getTopologyHints(pod, container);
  }

  getPodTopologyHints(pod: Pod): ResourceHints {
    this.removeStale();
    return this.#options.policy.getPodTopologyHints(pod);
  }

  async allocate(pod: Pod, container: Container): Promise<void> {
    this.removeStale();
    this.#options.policy.allocate(pod, container);
    await this.#options.state.flush();
  }

  getBlocks(uid: string, container: string): readonly MemoryBlock[] {
    return this.#options.state.get(uid, container) ?? [];
  }

  /** Releases the memory of containers that no active pod has. */
  removeStale(): void {
    const { state, policy, log } = this.#options;
    const pods = this.#options.activePods();
    if (pods === undefined) return;
    for (const { uid, container } of state.listStale(pods)) {
      log.info("Released the memory of a container", { pod: uid, container });
      policy.remove(uid, container);
    }
  }
}
