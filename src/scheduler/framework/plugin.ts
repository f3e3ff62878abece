/** The interface of plugins, with the extension points of Kubernetes' scheduling framework. */
import type { NodeInfo } from "../cache/node-info.ts";
import type { PodInfo } from "../cache/pod-info.ts";
import type { EventRegistration } from "./cluster-event.ts";
import type { Rejection } from "./rejection.ts";

export const extensionPoints = [
  "preEnqueue",
  "queueSort",
  "preFilter",
  "filter",
  "postFilter",
  "preScore",
  "score",
  "reserve",
  "permit",
  "preBind",
  "bind",
  "postBind",
] as const;
export type ExtensionPoint = (typeof extensionPoints)[number];

export interface Plugin {
  readonly name: string;
  /** The extension points at which `multiPoint` enables the plugin. */
  readonly points: readonly ExtensionPoint[];
  /** The events that may make a pod schedulable, which the plugin rejected. */
  readonly events?: readonly EventRegistration[];
  /** Rejects a pod that must not be scheduled yet. */
  preEnqueue?(pod: PodInfo): Rejection | undefined;
  /** Prepares the filter of one scheduling cycle. */
  preFilter?(cycle: Cycle): PreFilterResult;
  /** Attempts to make a pod schedulable that no node fits. */
  postFilter?(cycle: Cycle, rejections: NodeRejections): Promise<PostFilterResult>;
  /** Prepares the scores of one scheduling cycle; undefined if the plugin does not score the pod. */
  preScore?(cycle: Cycle, nodes: readonly NodeInfo[]): NodeScorer | undefined;
  /** Reserves what the pod uses on the node. `unreserve` reverts it. */
  reserve?(cycle: Cycle, node: NodeInfo): Rejection | undefined;
  unreserve?(cycle: Cycle): void;
  /** Prepares the node for the pod before it is bound. */
  preBind?(cycle: Cycle, node: NodeInfo, signal: AbortSignal): Promise<Rejection | undefined>;
  bind?(cycle: Cycle, nodeName: string, signal: AbortSignal): Promise<Rejection | undefined>;
}

/** The scheduling of one pod, from the queue to the binding. */
export interface Cycle {
  readonly pod: PodInfo;
  /** The filters that plugins prepared. */
  readonly filters: Map<string, NodeFilter>;
  /** What plugins keep from the filter to the binding, by their names. */
  readonly states: Map<string, object>;
}

export type PreFilterResult =
  /** The filter has nothing to check for the pod. */
  | "skip"
  | { readonly rejection: Rejection }
  /** `nodeNames`: only these nodes are possible. */
  | { readonly filter: NodeFilter; readonly nodeNames?: ReadonlySet<string> | undefined };

export interface NodeFilter {
  filter(node: NodeInfo): Rejection | undefined;
  /** Counts a pod as if it were on the node, or as if it were not. */
  addPod?(pod: PodInfo, node: NodeInfo): void;
  removePod?(pod: PodInfo, node: NodeInfo): void;
  /** A copy that `addPod` and `removePod` change independently; required with them. */
  clone?(): NodeFilter;
}

export interface NodeScorer {
  /** An integer. From 0 to 100 unless `normalize` is there. */
  score(node: NodeInfo): number;
  /** Scales the scores of all nodes to 0 to 100, in place. */
  normalize?(scores: number[], nodes: readonly NodeInfo[]): void;
}

/** Rejections by node; `absent` for all others. */
export interface NodeRejections {
  readonly byNode: Map<string, Rejection>;
  absent: Rejection | undefined;
}

export interface PostFilterResult {
  /** The node on which the pod will fit; empty to clear an earlier nomination; undefined to keep it. */
  readonly nominatedNodeName: string | undefined;
  /** Undefined if the plugin made the pod schedulable. */
  readonly rejection: Rejection | undefined;
}

export const MAX_NODE_SCORE = 100;
