/** The plugins that profiles may enable, with the extension points that each one implements. */
import type { ExtensionPoint } from "../framework/plugin.ts";

export interface DefaultPlugin {
  readonly name: string;
  readonly points: readonly ExtensionPoint[];
  /** Of its score; 1 when absent. */
  readonly weight?: number;
}

const FILTER: readonly ExtensionPoint[] = ["preFilter", "filter"];
const SCORE: readonly ExtensionPoint[] = ["preScore", "score"];

/** `multiPoint` of the default profile. There are no other plugins. */
export const DEFAULT_PLUGINS: readonly DefaultPlugin[] = [
  { name: "SchedulingGates", points: ["preEnqueue"] },
  { name: "PrioritySort", points: ["queueSort"] },
  { name: "NodeUnschedulable", points: ["filter"] },
  { name: "NodeName", points: ["filter"] },
  { name: "TaintToleration", points: ["filter", ...SCORE], weight: 3 },
  { name: "NodeAffinity", points: [...FILTER, ...SCORE], weight: 2 },
  { name: "NodePorts", points: FILTER },
  { name: "NodeResourcesFit", points: [...FILTER, ...SCORE] },
  { name: "VolumeRestrictions", points: FILTER },
  { name: "NodeVolumeLimits", points: FILTER },
  { name: "VolumeBinding", points: [...FILTER, "reserve", "preBind", ...SCORE] },
  { name: "VolumeZone", points: FILTER },
  { name: "PodTopologySpread", points: [...FILTER, ...SCORE], weight: 2 },
  { name: "InterPodAffinity", points: [...FILTER, ...SCORE], weight: 2 },
  { name: "DynamicResources", points: ["preEnqueue", ...FILTER, "postFilter", "reserve", "preBind"] },
  { name: "DefaultPreemption", points: ["preEnqueue", "postFilter"] },
  { name: "NodeResourcesBalancedAllocation", points: SCORE },
  { name: "ImageLocality", points: ["score"] },
  { name: "DefaultBinder", points: ["bind"] },
];

/** Plugins that Kubernetes has removed; their limits are part of NodeVolumeLimits. */
export const REMOVED_PLUGINS: readonly string[] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];
