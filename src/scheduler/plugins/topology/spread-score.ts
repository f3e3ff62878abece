/** Topology spread as a score: constraints with `whenUnsatisfiable: ScheduleAnyway`, and the default ones. */
import { getMember } from "../../../schema/value/plain-object.ts";
import type { ClusterCache } from "../../cache/cluster-cache.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import { spreadMatcher } from "../../cache/pod-match-index.ts";
import { MAX_NODE_SCORE, type NodeScorer } from "../../framework/plugin.ts";
import { hasAllKeys, type SpreadConstraint } from "./spread-constraint.ts";

const HOSTNAME = "kubernetes.io/hostname";
const IGNORED = -1;

interface Domains {
  readonly constraint: SpreadConstraint;
  /** The pods of each node; undefined for an empty selector, which as upstream counts none. */
  readonly byNode: ReadonlyMap<string, number> | undefined;
  /** The pods of each domain; undefined where every node is a domain. */
  readonly byDomain: Map<string, number> | undefined;
  /** A constraint with more domains counts more. */
  readonly weight: number;
}

/** `requireAllKeys`: nodes without all topology labels score nothing. */
export function createSpreadScorer(
  pod: PodInfo,
  constraints: readonly SpreadConstraint[],
  nodes: readonly NodeInfo[],
  cache: ClusterCache,
  requireAllKeys: boolean,
): NodeScorer {
  // Once for all constraints, of which a pod may have thousands.
  const known = new Map<NodeInfo, boolean>();
  const isScored = (node: NodeInfo): boolean => {
    const result = known.get(node) ?? (!requireAllKeys || hasAllKeys(node, constraints));
    known.set(node, result);
    return result;
  };
  const scored = nodes.filter(isScored);
  const domains = constraints.map((constraint): Domains => {
    const { selector, topologyKey } = constraint;
    const byNode = selector.isEmpty ? undefined : cache.matches.counts(spreadMatcher(pod.namespace, selector));
    if (topologyKey === HOSTNAME) {
      return { constraint, byNode, byDomain: undefined, weight: domainWeight(scored.length) };
    }
    const byDomain = new Map<string, number>();
    for (const { labels } of scored) byDomain.set(getMember(labels, topologyKey) ?? "", 0);
    return { constraint, byNode, byDomain, weight: domainWeight(byDomain.size) };
  });
  for (const { constraint, byNode, byDomain } of domains) {
    if (byDomain === undefined || byNode === undefined) continue;
    for (const [nodeName, count] of byNode) {
      const node = cache.node(nodeName);
      if (node === undefined || !isScored(node) || !constraint.includesNode(node)) continue;
      const domain = getMember(node.labels, constraint.topologyKey) ?? "";
      const sum = byDomain.get(domain);
      if (sum !== undefined) byDomain.set(domain, sum + count);
    }
  }
  return {
    score(node) {
      if (!isScored(node)) return IGNORED;
      let score = 0;
      for (const { constraint, byNode, byDomain, weight } of domains) {
        const domain = getMember(node.labels, constraint.topologyKey);
        if (domain === undefined) continue;
        const count = byDomain === undefined ? byNode?.get(node.name) : byDomain.get(domain);
        score += (count ?? 0) * weight + (constraint.maxSkew - 1);
      }
      return Math.round(score);
    },
    normalize: normalizeSpread,
  };
}

/** As upstream: so that few domains do not outweigh many. */
function domainWeight(domains: number): number {
  return Math.log(domains + 2);
}

/** Fewer pods score higher. */
function normalizeSpread(scores: number[]): void {
  const counted = scores.filter((score) => score !== IGNORED);
  const smallest = counted.reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER);
  const largest = counted.reduce((a, b) => Math.max(a, b), 0);
  for (const [index, score] of scores.entries()) {
    if (score === IGNORED) scores[index] = 0;
    else if (largest === 0) scores[index] = MAX_NODE_SCORE;
    else scores[index] = Math.trunc((MAX_NODE_SCORE * (largest + smallest - score)) / largest);
  }
}
