/** Runs the plugins of one profile at each extension point. */
import type { NodeInfo } from "../cache/node-info.ts";
import type { Nominator } from "../cache/nominator.ts";
import type { PodInfo } from "../cache/pod-info.ts";
import { FrameworkMetrics } from "./framework-metrics.ts";
import type {
  Cycle,
  ExtensionPoint,
  NodeFilter,
  NodeRejections,
  Plugin,
  PostFilterResult,
  PreFilterResult,
} from "./plugin.ts";
import { failed, type Rejection, unresolvable, unschedulable } from "./rejection.ts";

export interface ScorePlugin {
  readonly plugin: Plugin;
  readonly weight: number;
}

export interface FrameworkOptions {
  /** Pods select the profile by `spec.schedulerName`. */
  readonly schedulerName: string;
  readonly plugins: Readonly<Record<Exclude<ExtensionPoint, "score">, readonly Plugin[]>>;
  readonly scorers: readonly ScorePlugin[];
  /** From 1 to 100; zero for Kubernetes' function of the number of nodes. */
  readonly percentageOfNodesToScore: number;
  readonly nominator: Nominator;
  readonly metrics?: FrameworkMetrics | undefined;
}

export type PreFilterOutcome =
  | { readonly rejection: Rejection }
  | {
      /** Undefined: all nodes are possible. */
      readonly nodeNames: ReadonlySet<string> | undefined;
      /** The plugins that restricted the nodes, sorted. */
      readonly restrictedBy: readonly string[];
    };

export interface NodeScores {
  readonly totals: number[];
  /** The weighted scores of each plugin, in the order of the nodes. */
  readonly byPlugin: ReadonlyMap<string, readonly number[]>;
}

export class Framework {
  readonly options: FrameworkOptions;
  readonly metrics: FrameworkMetrics;

  constructor(options: FrameworkOptions) {
    this.options = options;
    this.metrics = options.metrics ?? new FrameworkMetrics();
  }

  /** All plugins at any extension point, once each. */
  plugins(): readonly Plugin[] {
    const { plugins, scorers } = this.options;
    return [...new Set([...Object.values(plugins).flat(), ...scorers.map(({ plugin }) => plugin)])];
  }

  preEnqueue(pod: PodInfo): Rejection | undefined {
    for (const plugin of this.options.plugins.preEnqueue) {
      const rejection = plugin.preEnqueue?.(pod);
      if (rejection !== undefined) return rejection;
    }
    return undefined;
  }

  /** Prepares the filters of the cycle. */
  preFilter(cycle: Cycle): PreFilterOutcome {
    this.metrics.beginCycle();
    const beganAt = this.metrics.now();
    const outcome = this.#preFilter(cycle);
    const rejection = "rejection" in outcome ? outcome.rejection : undefined;
    this.metrics.recordPoint("PreFilter", this.options.schedulerName, rejection, beganAt);
    return outcome;
  }

  #preFilter(cycle: Cycle): PreFilterOutcome {
    const { plugins, schedulerName } = this.options;
    const prepared = new Map<Plugin, PreFilterResult>();
    let rejection: Rejection | undefined;
    let nodeNames: ReadonlySet<string> | undefined;
    const restrictedBy: string[] = [];
    for (const plugin of new Set([...plugins.preFilter, ...plugins.filter])) {
      const call = (): PreFilterResult => plugin.preFilter?.(cycle) ?? "skip";
      const result = this.metrics.run("PreFilter", plugin.name, call, rejectionOfPreFilter);
      if (plugin.points.includes("preFilter")) this.metrics.recordEvaluations("PreFilter", plugin.name, schedulerName);
      prepared.set(plugin, result);
      if (result === "skip" || (!plugins.preFilter.includes(plugin) && plugin.points.includes("preFilter"))) continue;
      if ("rejection" in result) {
        const { code, reasons } = result.rejection;
        if (code === "Error")
          return { rejection: addContext(result.rejection, `running PreFilter plugin "${plugin.name}"`) };
        if (code !== "Unschedulable") return { rejection: result.rejection };
        rejection = { ...result.rejection, reasons };
        continue;
      }
      if (result.nodeNames === undefined) continue;
      restrictedBy.push(plugin.name);
      const allowed = result.nodeNames;
      nodeNames = nodeNames === undefined ? allowed : new Set([...nodeNames].filter((name) => allowed.has(name)));
      if (nodeNames.size > 0) continue;
      const names = restrictedBy.toSorted();
      const reason =
        names.length === 1
          ? `node(s) didn't satisfy plugin ${names[0]}`
          : `node(s) didn't satisfy plugin(s) [${names.join(" ")}] simultaneously`;
      return { rejection: unresolvable(plugin.name, reason) };
    }
    if (rejection !== undefined) return { rejection };
    for (const plugin of plugins.filter) {
      const result = prepared.get(plugin);
      if (result !== undefined && result !== "skip" && "filter" in result)
        cycle.filters.set(plugin.name, result.filter);
    }
    return { nodeNames, restrictedBy: restrictedBy.sort() };
  }

  /**
   * Filters with the nominated pods of the same or a higher priority on the node, since they will run there; and
   * without them, since they do not run there yet and the pod may depend on them.
   */
  filterWithNominatedPods(
    pod: PodInfo,
    filters: ReadonlyMap<string, NodeFilter>,
    node: NodeInfo,
  ): Rejection | undefined {
    const nominated = this.options.nominator.podsFor(node.name);
    if (nominated !== undefined) {
      const others = [...nominated.values()].filter(({ uid, priority }) => uid !== pod.uid && priority >= pod.priority);
      if (others.length > 0) {
        const withOthers = node.clone();
        const copies = cloneFilters(filters);
        for (const other of others) addPod(copies, other, withOthers);
        const rejection = runFilters(copies, withOthers);
        if (rejection !== undefined) return rejection;
      }
    }
    return runFilters(filters, node);
  }

  async postFilter(cycle: Cycle, rejections: NodeRejections): Promise<PostFilterResult | undefined> {
    const beganAt = this.metrics.now();
    const result = await this.#postFilter(cycle, rejections);
    this.metrics.recordPoint("PostFilter", this.options.schedulerName, result?.rejection, beganAt);
    return result;
  }

  async #postFilter(cycle: Cycle, rejections: NodeRejections): Promise<PostFilterResult | undefined> {
    const reasons: string[] = [];
    let nominatedNodeName: string | undefined;
    let rejection: Rejection | undefined;
    for (const plugin of this.options.plugins.postFilter) {
      const call = async (): Promise<PostFilterResult | undefined> => await plugin.postFilter?.(cycle, rejections);
      const result = await this.metrics.runAsync("PostFilter", plugin.name, call, (found) => found?.rejection);
      if (result === undefined) continue;
      if (result.rejection === undefined || result.rejection.code !== "Unschedulable") return result;
      reasons.push(...result.rejection.reasons);
      nominatedNodeName = result.nominatedNodeName ?? nominatedNodeName;
      rejection = unschedulable(plugin.name, ...reasons);
    }
    return rejection === undefined ? undefined : { nominatedNodeName, rejection };
  }

  get hasScorers(): boolean {
    return this.options.scorers.length > 0;
  }

  score(cycle: Cycle, nodes: readonly NodeInfo[]): NodeScores {
    const { metrics } = this;
    const { scorers, schedulerName } = this.options;
    const totals = new Array<number>(nodes.length).fill(0);
    const byPlugin = new Map<string, readonly number[]>();
    const never = (): undefined => undefined;
    const preScoreAt = metrics.now();
    const prepared = scorers.map(({ plugin, weight }) => {
      const scorer = metrics.run("PreScore", plugin.name, () => plugin.preScore?.(cycle, nodes), never);
      metrics.recordEvaluations("PreScore", plugin.name, schedulerName);
      return { plugin, weight, scorer };
    });
    metrics.recordPoint("PreScore", schedulerName, undefined, preScoreAt);
    const scoreAt = metrics.now();
    for (const { plugin, weight, scorer } of prepared) {
      if (scorer === undefined) continue;
      const call = (): number[] => nodes.map((node) => scorer.score(node));
      const scores = metrics.run("Score", plugin.name, call, never);
      metrics.recordEvaluations("Score", plugin.name, schedulerName, nodes.length);
      scorer.normalize?.(scores, nodes);
      for (let index = 0; index < scores.length; index++) {
        const weighted = scores[index]! * weight;
        scores[index] = weighted;
        totals[index]! += weighted;
      }
      byPlugin.set(plugin.name, scores);
    }
    metrics.recordPoint("Score", schedulerName, undefined, scoreAt);
    return { totals, byPlugin };
  }

  /** Reverts all reservations if one fails. */
  reserve(cycle: Cycle, node: NodeInfo): Rejection | undefined {
    const beganAt = this.metrics.now();
    let rejection: Rejection | undefined;
    for (const plugin of this.options.plugins.reserve) {
      const call = (): Rejection | undefined => plugin.reserve?.(cycle, node);
      rejection = this.metrics.run("Reserve", plugin.name, call, (result) => result);
      if (rejection !== undefined) break;
    }
    this.metrics.recordPoint("Reserve", this.options.schedulerName, rejection, beganAt);
    if (rejection === undefined) return undefined;
    this.unreserve(cycle);
    return rejection.code === "Error"
      ? addContext(rejection, `running Reserve plugin "${rejection.plugin}"`)
      : rejection;
  }

  unreserve(cycle: Cycle): void {
    const beganAt = this.metrics.now();
    for (const plugin of this.options.plugins.reserve.toReversed()) plugin.unreserve?.(cycle);
    this.metrics.recordPoint("Unreserve", this.options.schedulerName, undefined, beganAt);
  }

  async preBind(cycle: Cycle, node: NodeInfo, signal: AbortSignal): Promise<Rejection | undefined> {
    const beganAt = this.metrics.now();
    const rejection = await this.#preBind(cycle, node, signal);
    this.metrics.recordPoint("PreBind", this.options.schedulerName, rejection, beganAt);
    return rejection;
  }

  async #preBind(cycle: Cycle, node: NodeInfo, signal: AbortSignal): Promise<Rejection | undefined> {
    for (const plugin of this.options.plugins.preBind) {
      const call = async (): Promise<Rejection | undefined> => await plugin.preBind?.(cycle, node, signal);
      const rejection = await this.metrics.runAsync("PreBind", plugin.name, call, (result) => result);
      if (rejection?.code === "Error") return addContext(rejection, `running PreBind plugin "${plugin.name}"`);
      if (rejection !== undefined) return rejection;
    }
    return undefined;
  }

  /** The first plugin that binds does so. */
  async bind(cycle: Cycle, nodeName: string, signal: AbortSignal): Promise<Rejection | undefined> {
    const plugin = this.options.plugins.bind.find(({ bind }) => bind !== undefined);
    if (plugin === undefined) return failed("", "no bind plugin is enabled");
    const beganAt = this.metrics.now();
    const call = async (): Promise<Rejection | undefined> => await plugin.bind?.(cycle, nodeName, signal);
    const rejection = await this.metrics.runAsync("Bind", plugin.name, call, (result) => result);
    this.metrics.recordPoint("Bind", this.options.schedulerName, rejection, beganAt);
    return rejection && addContext(rejection, `running Bind plugin "${plugin.name}"`);
  }
}

function rejectionOfPreFilter(result: PreFilterResult): Rejection | undefined {
  return result !== "skip" && "rejection" in result ? result.rejection : undefined;
}

/** The first rejection counts. */
export function runFilters(filters: ReadonlyMap<string, NodeFilter>, node: NodeInfo): Rejection | undefined {
  for (const [plugin, filter] of filters) {
    const rejection = filter.filter(node);
    if (rejection?.code === "Error") return addContext(rejection, `running "${plugin}" filter plugin`);
    if (rejection !== undefined) return rejection;
  }
  return undefined;
}

export function cloneFilters(filters: ReadonlyMap<string, NodeFilter>): ReadonlyMap<string, NodeFilter> {
  return new Map([...filters].map(([name, filter]) => [name, filter.clone?.() ?? filter]));
}

/** Counts the pod on a copy of a node, for copies of filters. */
export function addPod(filters: ReadonlyMap<string, NodeFilter>, pod: PodInfo, node: NodeInfo): void {
  node.addPod(pod);
  for (const filter of filters.values()) filter.addPod?.(pod, node);
}

export function removePod(filters: ReadonlyMap<string, NodeFilter>, pod: PodInfo, node: NodeInfo): void {
  node.removePod(pod.uid);
  for (const filter of filters.values()) filter.removePod?.(pod, node);
}

function addContext(rejection: Rejection, context: string): Rejection {
  return { ...rejection, reasons: [`${context}: ${rejection.reasons.join(", ")}`] };
}
