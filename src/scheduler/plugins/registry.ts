/** The plugins by their names. */
import type { SchedulerFeatures } from "../config/features.ts";
import type { Extender } from "../extender/extender.ts";
import type { Framework } from "../framework/framework.ts";
import type { Handle } from "../framework/handle.ts";
import type { Plugin } from "../framework/plugin.ts";
import { createDefaultPreemption, type DefaultPreemptionArgs } from "../preemption/default-preemption.ts";
import type { Evictions } from "../preemption/evictions.ts";
import { createDefaultBinder } from "./nodes/default-binder.ts";
import { createImageLocality } from "./nodes/image-locality.ts";
import { createNodeAffinity, type NodeAffinityArgs } from "./nodes/node-affinity.ts";
import { nodeName } from "./nodes/node-name.ts";
import { nodePorts } from "./nodes/node-ports.ts";
import { nodeUnschedulable } from "./nodes/node-unschedulable.ts";
import { prioritySort } from "./nodes/priority-sort.ts";
import { schedulingGates } from "./nodes/scheduling-gates.ts";
import { taintToleration } from "./nodes/taint-toleration.ts";
import { type BalancedAllocationArgs, createBalancedAllocation } from "./resources/balanced-allocation.ts";
import { createNodeResourcesFit, type NodeResourcesFitArgs } from "./resources/node-resources-fit.ts";
import { createInterPodAffinity, type InterPodAffinityArgs } from "./topology/inter-pod-affinity.ts";
import { createPodTopologySpread, type PodTopologySpreadArgs } from "./topology/pod-topology-spread.ts";
import { createNodeVolumeLimits } from "./volumes/node-volume-limits.ts";
import { createVolumeBinding, type VolumeBindingArgs } from "./volumes/volume-binding.ts";
import { createVolumeRestrictions } from "./volumes/volume-restrictions.ts";
import { createVolumeZone } from "./volumes/volume-zone.ts";

/** `pluginConfig` of a profile, by plugin. */
export interface PluginArgs {
  readonly DefaultPreemption: DefaultPreemptionArgs;
  readonly InterPodAffinity: InterPodAffinityArgs;
  readonly NodeAffinity: NodeAffinityArgs;
  readonly NodeResourcesBalancedAllocation: BalancedAllocationArgs;
  readonly NodeResourcesFit: NodeResourcesFitArgs;
  readonly PodTopologySpread: PodTopologySpreadArgs;
  readonly VolumeBinding: VolumeBindingArgs;
}

export interface PluginDeps {
  readonly handle: Handle;
  readonly extenders: readonly Extender[];
  readonly evictions: Evictions;
  readonly features: SchedulerFeatures;
  readonly framework: () => Framework;
  /** Undefined: pods have no resource claims. */
  readonly dynamicResources?: Plugin | undefined;
}

/** Without the gate, configurations may name the plugin. */
const noDynamicResources: Plugin = { name: "DynamicResources", points: [] };

/** All plugins, in the order of the default profile. */
export function createPlugins(args: Partial<PluginArgs>, deps: PluginDeps): ReadonlyMap<string, Plugin> {
  const { handle, extenders, evictions, features, framework, dynamicResources = noDynamicResources } = deps;
  const plugins = [
    schedulingGates,
    prioritySort,
    nodeUnschedulable,
    nodeName,
    taintToleration,
    createNodeAffinity(args.NodeAffinity ?? {}),
    nodePorts,
    createNodeResourcesFit(args.NodeResourcesFit ?? {}),
    createVolumeRestrictions(handle),
    createNodeVolumeLimits(handle.listers),
    createVolumeBinding(args.VolumeBinding ?? {}, handle, features.storageCapacityScoring),
    createVolumeZone(handle.listers),
    createPodTopologySpread(args.PodTopologySpread ?? {}, handle),
    createInterPodAffinity(args.InterPodAffinity ?? {}, handle.cache),
    // Before preemption: releasing an idle claim is better than evicting a pod.
    dynamicResources,
    createDefaultPreemption(args.DefaultPreemption ?? {}, {
      ...handle,
      framework,
      extenders,
      async evict(pod, victims) {
        const evicted = evictions.evict(pod, victims);
        if (!features.asyncPreemption) await evicted;
      },
      isPreempting: (uid) => evictions.isPreempting(uid),
    }),
    createBalancedAllocation(args.NodeResourcesBalancedAllocation ?? {}),
    createImageLocality(handle.cache),
    createDefaultBinder(handle.client),
  ];
  return new Map(plugins.map((plugin) => [plugin.name, plugin]));
}
