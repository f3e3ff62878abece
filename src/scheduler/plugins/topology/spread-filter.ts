/** Topology spread as a filter: constraints with `whenUnsatisfiable: DoNotSchedule`. */
import { getMember } from "../../../schema/value/plain-object.ts";
import type { ClusterCache } from "../../cache/cluster-cache.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import { spreadMatcher } from "../../cache/pod-match-index.ts";
import type { NodeFilter } from "../../framework/plugin.ts";
import { type Rejection, unresolvable, unschedulable } from "../../framework/rejection.ts";
import { hasAllKeys, type SpreadConstraint } from "./spread-constraint.ts";

const NAME = "PodTopologySpread";
const SKEWED = unschedulable(NAME, "node(s) didn't match pod topology spread constraints");
const NO_LABEL = unresolvable(NAME, "node(s) didn't match pod topology spread constraints (missing required label)");

/** The pods of each domain that a constraint counts. */
interface Domains {
  readonly counts: Map<string, number>;
  /** Undefined when the counts have changed. */
  minimum: number | undefined;
}

export function createSpreadFilter(
  pod: PodInfo,
  constraints: readonly SpreadConstraint[],
  cache: ClusterCache,
): NodeFilter {
  // Once for all constraints, of which a pod may have thousands.
  const nodes = [...cache.nodes()].filter((node) => hasAllKeys(node, constraints));
  const domains = constraints.map((constraint) => countDomains(pod, constraint, nodes, cache));
  return new SpreadFilter(pod, constraints, domains);
}

function countDomains(
  pod: PodInfo,
  constraint: SpreadConstraint,
  nodes: readonly NodeInfo[],
  cache: ClusterCache,
): Domains {
  const { selector, topologyKey, includesNode } = constraint;
  // As upstream, an empty selector counts no pods.
  const byNode = selector.isEmpty ? undefined : cache.matches.counts(spreadMatcher(pod.namespace, selector));
  const counts = new Map<string, number>();
  for (const node of nodes) {
    if (!includesNode(node)) continue;
    const domain = getMember(node.labels, topologyKey) ?? "";
    counts.set(domain, (counts.get(domain) ?? 0) + (byNode?.get(node.name) ?? 0));
  }
  return { counts, minimum: undefined };
}

class SpreadFilter implements NodeFilter {
  readonly #pod: PodInfo;
  readonly #constraints: readonly SpreadConstraint[];
  readonly #domains: readonly Domains[];

  constructor(pod: PodInfo, constraints: readonly SpreadConstraint[], domains: readonly Domains[]) {
    this.#pod = pod;
    this.#constraints = constraints;
    this.#domains = domains;
  }

  filter({ labels }: NodeInfo): Rejection | undefined {
    for (const [index, { topologyKey, selector, maxSkew, minDomains }] of this.#constraints.entries()) {
      const domain = getMember(labels, topologyKey);
      if (domain === undefined) return NO_LABEL;
      const domains = this.#domains[index]!;
      const own = selector.matches(this.#pod.labels) ? 1 : 0;
      const skew = (domains.counts.get(domain) ?? 0) + own - minimumOf(domains, minDomains);
      if (skew > maxSkew) return SKEWED;
    }
    return undefined;
  }

  addPod(pod: PodInfo, node: NodeInfo): void {
    this.#count(pod, node, 1);
  }

  removePod(pod: PodInfo, node: NodeInfo): void {
    this.#count(pod, node, -1);
  }

  clone(): NodeFilter {
    const domains = this.#domains.map(({ counts, minimum }) => ({ counts: new Map(counts), minimum }));
    return new SpreadFilter(this.#pod, this.#constraints, domains);
  }

  #count(pod: PodInfo, node: NodeInfo, difference: 1 | -1): void {
    if (pod.namespace !== this.#pod.namespace || !hasAllKeys(node, this.#constraints)) return;
    for (const [index, { selector, topologyKey, includesNode }] of this.#constraints.entries()) {
      if (!selector.matches(pod.labels) || !includesNode(node)) continue;
      const domains = this.#domains[index]!;
      const domain = getMember(node.labels, topologyKey) ?? "";
      domains.counts.set(domain, (domains.counts.get(domain) ?? 0) + difference);
      domains.minimum = undefined;
    }
  }
}

/** Zero while there are fewer domains than required. Without any domain every node is allowed. */
function minimumOf(domains: Domains, minDomains: number): number {
  if (domains.minimum === undefined) {
    let minimum = Number.MAX_SAFE_INTEGER;
    for (const count of domains.counts.values()) if (count < minimum) minimum = count;
    domains.minimum = minimum;
  }
  return domains.counts.size < minDomains ? 0 : domains.minimum;
}
