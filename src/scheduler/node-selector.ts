/** Selects the node for a pod: filters nodes until enough fit, and takes one of those with the highest score. */
import type { RandomSource } from "../std/crypto/random.ts";
import type { ClusterCache } from "./cache/cluster-cache.ts";
import type { NodeInfo } from "./cache/node-info.ts";
import type { Extender } from "./extender/extender.ts";
import { type Framework, type NodeScores, runFilters } from "./framework/framework.ts";
import type { Cycle, NodeRejections } from "./framework/plugin.ts";
import { type Rejection, unresolvable } from "./framework/rejection.ts";

export interface SelectNodeDeps {
  readonly cache: ClusterCache;
  readonly extenders: readonly Extender[];
  readonly random: RandomSource;
  readonly signal: AbortSignal;
}

export interface Diagnosis {
  readonly rejections: NodeRejections;
  /** The plugins that rejected the pod, and those that it waits for. */
  readonly rejectedBy: Set<string>;
  readonly pendingOn: Set<string>;
  preFilterMessage: string;
}

export type Selection =
  | { readonly node: NodeInfo; readonly evaluated: number; readonly feasible: number; readonly scores?: NodeScores }
  | { readonly node: undefined; readonly diagnosis: Diagnosis }
  /** `isError` is false if there are no nodes at all. */
  | { readonly node: undefined; readonly error: string; readonly isError: boolean };

/** Fewer nodes are not sampled. */
const SAMPLE_NODES_MIN = 100;
const SAMPLE_PERCENTAGE_MIN = 5;

export class NodeSelector {
  readonly #deps: SelectNodeDeps;
  /** The search continues where the last one ended, so that all nodes have the same chance. */
  #start = 0;

  constructor(deps: SelectNodeDeps) {
    this.#deps = deps;
  }

  async select(framework: Framework, cycle: Cycle): Promise<Selection> {
    const all = this.#deps.cache.nodes();
    if (all.length === 0) return { node: undefined, error: "no nodes available to schedule pods", isError: false };
    const diagnosis: Diagnosis = {
      rejections: { byNode: new Map(), absent: undefined },
      rejectedBy: new Set(),
      pendingOn: new Set(),
      preFilterMessage: "",
    };
    const feasible = await this.#findFeasible(framework, cycle, all, diagnosis);
    if ("code" in feasible) return { node: undefined, error: feasible.reasons.join(", "), isError: true };
    if (feasible.length === 0) return { node: undefined, diagnosis };
    const evaluated = feasible.length + diagnosis.rejections.byNode.size;
    if (feasible.length === 1) return { node: feasible[0]!, evaluated, feasible: 1 };
    const scores = await this.#score(framework, cycle, feasible);
    return { node: this.#pickBest(feasible, scores.totals), evaluated, feasible: feasible.length, scores };
  }

  async #findFeasible(
    framework: Framework,
    cycle: Cycle,
    all: readonly NodeInfo[],
    diagnosis: Diagnosis,
  ): Promise<readonly NodeInfo[] | Rejection> {
    const outcome = framework.preFilter(cycle);
    if ("rejection" in outcome) {
      const { rejection } = outcome;
      if (rejection.code === "Error") return rejection;
      diagnosis.rejections.absent = rejection;
      diagnosis.preFilterMessage = rejection.reasons.join(", ");
      addRejection(diagnosis, rejection);
      return [];
    }
    const { nodeNames, restrictedBy } = outcome;
    for (const name of restrictedBy) diagnosis.rejectedBy.add(name);
    const nominated = this.#deps.cache.node(cycle.pod.pod.status?.nominatedNodeName ?? "");
    if (nominated !== undefined) {
      // Preemption has freed capacity there. The node is tried alone before all others.
      const passed = await this.#filter(framework, cycle, [nominated], diagnosis, 0);
      if (!("code" in passed) && passed.length > 0) return passed;
    }
    if (nodeNames === undefined) {
      const start = this.#start % all.length;
      const found = await this.#filter(framework, cycle, all, diagnosis, start);
      this.#start = (start + ("code" in found ? 0 : found.length) + diagnosis.rejections.byNode.size) % all.length;
      return found;
    }
    const named = [...nodeNames].flatMap((name) => this.#deps.cache.node(name) ?? []);
    diagnosis.rejections.absent = unresolvable("", `node(s) didn't satisfy plugin(s) [${restrictedBy.join(" ")}]`);
    return await this.#filter(framework, cycle, named, diagnosis, 0);
  }

  async #filter(
    framework: Framework,
    cycle: Cycle,
    nodes: readonly NodeInfo[],
    diagnosis: Diagnosis,
    start: number,
  ): Promise<readonly NodeInfo[] | Rejection> {
    const { metrics } = framework;
    const { schedulerName } = framework.options;
    const beganAt = metrics.now();
    const wanted = this.#wantedCount(framework, nodes.length);
    const feasible: NodeInfo[] = [];
    const { pod, filters } = cycle;
    const hasNominations = framework.options.nominator.size > 0;
    for (let index = 0; index < nodes.length && feasible.length < wanted; index++) {
      const node = nodes[(start + index) % nodes.length]!;
      const rejection = hasNominations
        ? framework.filterWithNominatedPods(pod, filters, node)
        : runFilters(filters, node);
      if (rejection === undefined) feasible.push(node);
      else if (rejection.code === "Error") {
        metrics.recordPoint("Filter", schedulerName, rejection, beganAt);
        return rejection;
      } else {
        diagnosis.rejections.byNode.set(node.name, rejection);
        addRejection(diagnosis, rejection);
      }
    }
    const [rejection] = feasible.length === 0 ? diagnosis.rejections.byNode.values() : [];
    metrics.recordPoint("Filter", schedulerName, rejection, beganAt);
    metrics.recordFilterEvaluations(filters.keys(), schedulerName, feasible.length, diagnosis.rejections);
    return await this.#filterByExtenders(cycle, feasible, diagnosis);
  }

  async #filterByExtenders(
    { pod }: Cycle,
    feasible: readonly NodeInfo[],
    diagnosis: Diagnosis,
  ): Promise<readonly NodeInfo[] | Rejection> {
    let left = feasible;
    for (const extender of this.#deps.extenders) {
      if (left.length === 0) break;
      if (extender.filter === undefined || !extender.isInterested(pod)) continue;
      try {
        const { nodes, rejections } = await extender.filter(pod, left, this.#deps.signal);
        for (const [name, rejection] of rejections) diagnosis.rejections.byNode.set(name, rejection);
        left = nodes;
      } catch (error) {
        if (extender.ignorable) continue;
        return { code: "Error", plugin: "Extender", reasons: [(error as Error).message] };
      }
    }
    if (left.length !== feasible.length) diagnosis.rejectedBy.add("Extender");
    return left;
  }

  /** How many feasible nodes are enough, as upstream: in large clusters a decreasing share of all. */
  #wantedCount(framework: Framework, nodeCount: number): number {
    const { extenders } = this.#deps;
    const isScored = framework.hasScorers || extenders.some(({ prioritize }) => prioritize !== undefined);
    if (!isScored && !extenders.some(({ filter }) => filter !== undefined)) return 1;
    if (nodeCount < SAMPLE_NODES_MIN) return nodeCount;
    const configured = framework.options.percentageOfNodesToScore;
    const percentage =
      configured === 0 ? Math.max(SAMPLE_PERCENTAGE_MIN, 50 - Math.trunc(nodeCount / 125)) : configured;
    return Math.max(SAMPLE_NODES_MIN, Math.trunc((nodeCount * percentage) / 100));
  }

  async #score(framework: Framework, cycle: Cycle, nodes: readonly NodeInfo[]): Promise<NodeScores> {
    const scores = framework.score(cycle, nodes);
    for (const extender of this.#deps.extenders) {
      if (extender.prioritize === undefined || !extender.isInterested(cycle.pod)) continue;
      // As upstream, an extender that fails scores nothing.
      const added = await extender
        .prioritize(cycle.pod, nodes, this.#deps.signal)
        .catch((): ReadonlyMap<string, number> => new Map());
      for (const [index, { name }] of nodes.entries()) scores.totals[index]! += added.get(name) ?? 0;
    }
    return scores;
  }

  /** Any of the best, at random. */
  #pickBest(nodes: readonly NodeInfo[], totals: readonly number[]): NodeInfo {
    let best = totals[0]!;
    let ties = 0;
    for (const total of totals) {
      if (total > best) {
        best = total;
        ties = 0;
      }
      if (total === best) ties++;
    }
    let skipped = Math.floor(this.#deps.random.fraction() * ties);
    const index = totals.findIndex((total) => total === best && skipped-- === 0);
    return nodes[index]!;
  }
}

function addRejection({ rejectedBy, pendingOn }: Diagnosis, { plugin, code }: Rejection): void {
  rejectedBy.add(plugin);
  if (code === "Pending") pendingOn.add(plugin);
}
