import type { PodInfo } from "../cache/pod-info.ts";
import type { Extender } from "../extender/extender.ts";
import { fitMessage } from "../framework/fit-error.ts";
import type { Framework } from "../framework/framework.ts";
import type { Handle } from "../framework/handle.ts";
import type { Cycle, NodeRejections, Plugin, PostFilterResult } from "../framework/plugin.ts";
import { failed, type Rejection, unresolvable, unschedulable } from "../framework/rejection.ts";
import { chooseCandidate } from "./choose-candidate.ts";
import { selectVictims, type Victims } from "./victims.ts";

const NAME = "DefaultPreemption";
const NOT_HELPFUL = unresolvable(NAME, "Preemption is not helpful for scheduling");

export interface DefaultPreemptionArgs {
  /** The number of candidates to find: a share of the nodes, but at least the absolute number. */
  readonly minCandidateNodesPercentage?: number | undefined;
  readonly minCandidateNodesAbsolute?: number | undefined;
}

export interface DefaultPreemptionDeps extends Pick<Handle, "cache" | "nominator" | "listers" | "random" | "log"> {
  readonly framework: () => Framework;
  readonly extenders: readonly Extender[];
  /**
   * Deletes the victims, or resolves at once and does so in the background. `isPreempting` is true until the last of
   * them is about to be deleted.
   */
  readonly evict: (pod: PodInfo, victims: Victims) => Promise<void>;
  readonly isPreempting: (uid: string) => boolean;
}

/** Frees capacity for pods of a higher priority by deleting others. */
export function createDefaultPreemption(args: DefaultPreemptionArgs, deps: DefaultPreemptionDeps): Plugin {
  return {
    name: NAME,
    points: ["preEnqueue", "postFilter"],
    events: [{ resource: "AssignedPod", actions: ["Delete"] }],
    preEnqueue({ uid }) {
      if (!deps.isPreempting(uid)) return undefined;
      return unresolvable(NAME, "waiting for the preemption for this pod to be finished");
    },
    async postFilter(cycle, rejections) {
      const result = await preempt(cycle, rejections, args, deps);
      if (result.rejection === undefined) return result;
      const reasons = [`preemption: ${result.rejection.reasons.join(", ")}`];
      return { ...result, rejection: { ...result.rejection, reasons } };
    },
  };
}

async function preempt(
  cycle: Cycle,
  rejections: NodeRejections,
  args: DefaultPreemptionArgs,
  deps: DefaultPreemptionDeps,
): Promise<PostFilterResult> {
  const { pod } = cycle;
  const ineligible = ineligibility(pod, rejections, deps);
  if (ineligible !== undefined) {
    return { nominatedNodeName: undefined, rejection: unschedulable(NAME, ineligible) };
  }
  const { candidates, byNode } = findCandidates(cycle, rejections, args, deps);
  if (candidates.length === 0) {
    const message = fitMessage({
      nodeCount: deps.cache.nodes().length,
      rejections: { byNode, absent: NOT_HELPFUL },
      preFilterMessage: "",
      postFilterMessage: "",
    });
    return { nominatedNodeName: "", rejection: unschedulable(NAME, message) };
  }
  let left: readonly Victims[] = candidates;
  for (const extender of deps.extenders) {
    if (extender.preempt === undefined || !extender.isInterested(pod)) continue;
    try {
      left = await extender.preempt(pod, left);
    } catch (error) {
      if (extender.ignorable) continue;
      return { nominatedNodeName: undefined, rejection: failed(NAME, error) };
    }
    if (left.length === 0) break;
  }
  const chosen = chooseCandidate(left);
  if (chosen === undefined) {
    return { nominatedNodeName: undefined, rejection: unschedulable(NAME, "no candidate node for preemption") };
  }
  await deps.evict(pod, chosen);
  return { nominatedNodeName: chosen.node.name, rejection: undefined };
}

/** Why the pod must not preempt others. */
function ineligibility(
  pod: PodInfo,
  { byNode, absent }: NodeRejections,
  deps: DefaultPreemptionDeps,
): string | undefined {
  if (pod.pod.spec?.preemptionPolicy === "Never") return "not eligible due to preemptionPolicy=Never.";
  const nominated = pod.pod.status?.nominatedNodeName ?? "";
  if (nominated === "") return undefined;
  if ((byNode.get(nominated) ?? absent)?.code === "UnschedulableAndUnresolvable") return undefined;
  const victims = [...(deps.cache.node(nominated)?.pods.values() ?? [])];
  const isTerminating = victims.some((victim) => victim.priority < pod.priority && isPreempted(victim));
  return isTerminating ? "not eligible due to a terminating pod on the nominated node." : undefined;
}

function isPreempted({ pod: { metadata, status } }: PodInfo): boolean {
  if (metadata?.deletionTimestamp === undefined) return false;
  const target = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  return target?.status === "True" && target.reason === "PreemptionByScheduler";
}

function findCandidates(
  { pod, filters }: Cycle,
  { byNode, absent }: NodeRejections,
  { minCandidateNodesPercentage = 10, minCandidateNodesAbsolute = 100 }: DefaultPreemptionArgs,
  { cache, framework, listers, random }: DefaultPreemptionDeps,
): { readonly candidates: readonly Victims[]; readonly byNode: Map<string, Rejection> } {
  const rejected = new Map<string, Rejection>();
  const potential = cache.nodes().filter(({ name }) => (byNode.get(name) ?? absent)?.code === "Unschedulable");
  if (potential.length === 0) return { candidates: [], byNode: rejected };
  const share = Math.trunc((potential.length * minCandidateNodesPercentage) / 100);
  const wanted = Math.min(Math.max(share, minCandidateNodesAbsolute), potential.length);
  // Starts anywhere, so that not always the same nodes are candidates.
  const offset = Math.trunc(random.fraction() * potential.length);
  const budgets = [...listers.budgets.list()];
  const good: Victims[] = [];
  const violating: Victims[] = [];
  for (let index = 0; index < potential.length; index++) {
    const node = potential[(offset + index) % potential.length]!;
    const victims = selectVictims(pod, node, filters, budgets, (copies, copy) =>
      framework().filterWithNominatedPods(pod, copies, copy),
    );
    if ("code" in victims) rejected.set(node.name, victims);
    else if (victims.pods.length > 0) (victims.violations === 0 ? good : violating).push(victims);
    if (good.length > 0 && good.length + violating.length >= wanted) break;
  }
  return { candidates: [...good, ...violating], byNode: rejected };
}
