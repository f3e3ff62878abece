/** Gives containers of Guaranteed pods CPUs of their own, and keeps all others off these. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Logger } from "../../../std/log/logger.ts";
import { allContainers, podUid } from "../../pods/pod-fields.ts";
import type { Observation, ObservedContainer } from "../../runtime/observation.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { HintProvider, ResourceHints } from "../topology/topology-hint.ts";
import type { CpuSet } from "./cpu-set.ts";
import type { CpuState } from "./cpu-state.ts";
import type { StaticCpuPolicy } from "./static-cpu-policy.ts";

/** A pod with what runs of it. */
export interface RunningPod {
  readonly pod: Pod;
  readonly observation: Observation;
}

export interface CpuManagerOptions {
  readonly policy: StaticCpuPolicy;
  readonly state: CpuState;
  readonly runtime: Pick<Runtime, "updateContainerResources">;
  /** Undefined until all sources of pods have been read: nothing is released before. */
  readonly activePods: () => readonly RunningPod[] | undefined;
  readonly log: Logger;
}

export class CpuManager implements HintProvider {
  readonly #options: CpuManagerOptions;
  /** CPUs that running containers have, as last written, by container ID. */
  readonly #written = new Map<string, CpuSet>();

  constructor(options: CpuManagerOptions) {
    this.#options = options;
  }

  get allocatable(): CpuSet {
    return this.#options.policy.allocatable;
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

  /** The CPUs of a container: its own or the shared ones. */
  getCpus(uid: string, container: string): CpuSet {
    const { state } = this.#options;
    return state.get(uid, container) ?? state.shared;
  }

  /** Its own CPUs; undefined: it has none. */
  getExclusiveCpus(uid: string, container: string): CpuSet | undefined {
    return this.#options.state.get(uid, container);
  }

  /** Releases the CPUs of containers that no active pod has. */
  removeStale(): void {
    const { state, policy, log } = this.#options;
    const pods = this.#options.activePods();
    if (pods === undefined) return;
    for (const { uid, container } of state.listStale(pods.map(({ pod }) => pod))) {
      log.info("Released the CPUs of a container", { pod: uid, container });
      policy.remove(uid, container);
    }
  }

  /** Writes the CPUs of running containers that changed since they were written. */
  async reconcile(signal: AbortSignal): Promise<void> {
    this.removeStale();
    await this.#options.state.flush();
    const running = (this.#options.activePods() ?? []).flatMap(listRunning);
    const ids = new Set(running.map(({ container }) => container.id));
    for (const id of this.#written.keys()) if (!ids.has(id)) this.#written.delete(id);
    for (const { uid, container } of running) await this.#writeCpus(uid, container, signal);
  }

  async #writeCpus(uid: string, { id, name }: ObservedContainer, signal: AbortSignal): Promise<void> {
    const { runtime, log } = this.#options;
    const cpus = this.getCpus(uid, name);
    if (cpus.isEmpty || this.#written.get(id)?.equals(cpus) === true) return;
    try {
      const linux = { cpusetCpus: cpus.toString() };
      await runtime.updateContainerResources({ containerId: id, linux }, signal);
      this.#written.set(id, cpus);
    } catch (error) {
      if (signal.aborted) return;
      log.warn("Failed to update the CPUs of a container", { container: name, cpus: `${cpus}`, error: String(error) });
    }
  }
}

function listRunning({ pod, observation }: RunningPod): readonly { uid: string; container: ObservedContainer }[] {
  const names = new Set(allContainers(pod).map(({ spec }) => spec.name));
  return observation.containers
    .filter(({ state, name }) => state === "running" && names.has(name))
    .map((container) => ({ uid: podUid(pod), container }));
}
