/** Aligns the resources of a container, or of a pod, with NUMA nodes, when the pod is admitted. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CounterFamily, HistogramFamily } from "../../../std/metrics/metrics.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { appContainers, initContainers, podUid } from "../../pods/pod-fields.ts";
import { keepSingleNode, listHints, mergeHints, type NumaNodes } from "./merge-hints.ts";
import { maskOf } from "./numa-mask.ts";
import {
  AdmissionError,
  type AffinityStore,
  type HintProvider,
  type ResourceHints,
  type TopologyHint,
} from "./topology-hint.ts";
import type { TopologyOptions } from "./topology-options.ts";

export type TopologyPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";
export type TopologyScope = "container" | "pod";

export interface TopologyMetrics {
  readonly requests: CounterFamily;
  readonly errors: CounterFamily;
  readonly durationMs: HistogramFamily;
  /** By scope and boundary. */
  readonly aligned: CounterFamily;
  readonly alignmentFailures: CounterFamily;
}

export interface TopologyManagerOptions {
  readonly policy: TopologyPolicy;
  readonly scope: TopologyScope;
  readonly options: TopologyOptions;
  readonly numa: NumaNodes;
  readonly metrics: TopologyMetrics;
  readonly clock: Clock;
}

const ANY: TopologyHint = { affinity: undefined, isPreferred: false };
const AFFINITY_ERROR = "Resources cannot be allocated with Topology locality";
const BOUNDARY = "numa_node";

export class TopologyManager implements AffinityStore {
  readonly #options: TopologyManagerOptions;
  /** In the order in which they allocate. */
  readonly #providers: HintProvider[] = [];
  /** By pod and container. */
  readonly #affinities = new Map<string, Map<string, TopologyHint>>();

  /** Throws for a machine with more NUMA nodes than the policy supports. */
  constructor(options: TopologyManagerOptions) {
    const { nodesMax } = options.options;
    if (options.policy !== "none" && options.numa.nodes.length > nodesMax) {
      throw new Error(`unsupported on machines with more than ${nodesMax} NUMA Nodes`);
    }
    this.#options = options;
    if (options.policy === "none") return;
    for (const family of [options.metrics.aligned, options.metrics.alignmentFailures]) {
      for (const scope of ["container", "pod"]) family.with(scope, BOUNDARY).inc(0);
    }
  }

  get policy(): TopologyPolicy {
    return this.#options.policy;
  }

  addProvider(provider: HintProvider): void {
    this.#providers.push(provider);
  }

  getAffinity(uid: string, container: string): TopologyHint {
    return this.#affinities.get(uid)?.get(container) ?? ANY;
  }

  /** Allocates what the pod's containers request. Rejects with the reason for which the node does not admit the pod. */
  async admit(pod: Pod): Promise<void> {
    const { metrics, clock } = this.#options;
    const began = clock.monotonic();
    metrics.requests.with().inc();
    try {
      await this.#allocate(pod);
    } catch (error) {
      if (this.policy !== "none") metrics.errors.with().inc();
      throw error;
    } finally {
      metrics.durationMs.with().observe(Math.trunc(clock.monotonic() - began));
    }
  }

  remove(uid: string): void {
    this.#affinities.delete(uid);
  }

  async #allocate(pod: Pod): Promise<void> {
    const { policy, scope } = this.#options;
    const containers = [...initContainers(pod), ...appContainers(pod)];
    if (policy !== "none" && scope === "pod") {
      const hint = this.#align(this.#providers.map((provider) => provider.getPodTopologyHints(pod)));
      for (const container of containers) await this.#allocateContainer(pod, container, hint);
      this.#countAlignment(this.#options.metrics.aligned);
      return;
    }
    for (const container of containers) {
      const hint =
        policy === "none"
          ? undefined
          : this.#align(this.#providers.map((provider) => provider.getTopologyHints(pod, container)));
      await this.#allocateContainer(pod, container, hint);
      if (policy !== "none") this.#countAlignment(this.#options.metrics.aligned);
    }
  }

  async #allocateContainer(pod: Pod, container: Container, hint: TopologyHint | undefined): Promise<void> {
    if (hint !== undefined) {
      const uid = podUid(pod);
      const hints = this.#affinities.get(uid) ?? new Map<string, TopologyHint>();
      this.#affinities.set(uid, hints.set(container.name, hint));
    }
    for (const provider of this.#providers) await provider.allocate(pod, container);
  }

  #align(hints: readonly ResourceHints[]): TopologyHint {
    const { hint, isAdmitted } = this.#merge(hints);
    if (isAdmitted) return hint;
    this.#countAlignment(this.#options.metrics.alignmentFailures);
    throw new AdmissionError("TopologyAffinityError", AFFINITY_ERROR);
  }

  #merge(hints: readonly ResourceHints[]): { readonly hint: TopologyHint; readonly isAdmitted: boolean } {
    const { policy, numa, options } = this.#options;
    const lists = listHints(hints);
    if (policy !== "single-numa-node") {
      const hint = mergeHints(lists, numa, options.prefersClosest);
      return { hint, isAdmitted: policy === "best-effort" || hint.isPreferred };
    }
    const { affinity, isPreferred } = mergeHints(keepSingleNode(lists), numa, false);
    // All nodes together are no preference.
    const hint = { affinity: affinity === maskOf(numa.nodes) ? undefined : affinity, isPreferred };
    return { hint, isAdmitted: isPreferred };
  }

  #countAlignment(family: CounterFamily): void {
    const { policy, scope } = this.#options;
    // Only this policy guarantees the alignment.
    if (policy === "single-numa-node") family.with(scope, BOUNDARY).inc();
  }
}

/** Why the pod is not admitted, as its status shows it. */
export function toRejection(error: unknown): { readonly reason: string; readonly message: string } {
  if (error instanceof AdmissionError) return { reason: error.reason, message: error.message };
  const text = error instanceof Error ? error.message : String(error);
  return { reason: "UnexpectedAdmissionError", message: `Allocate failed due to ${text}, which is unexpected` };
}
