/** Webhooks that take part in scheduling: `extenders` of the configuration. */
import type { NodeInfo } from "../cache/node-info.ts";
import type { PodInfo } from "../cache/pod-info.ts";
import type { Rejection } from "../framework/rejection.ts";
import type { Victims } from "../preemption/victims.ts";

export interface Extender {
  readonly name: string;
  /** Scheduling goes on without the extender when it fails. */
  readonly ignorable: boolean;
  isInterested(pod: PodInfo): boolean;
  filter?(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal): Promise<ExtenderFilterResult>;
  /** Weighted scores by node. */
  prioritize?(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** Returns the candidates that the extender accepts, with its choice of victims. */
  preempt?(pod: PodInfo, candidates: readonly Victims[]): Promise<readonly Victims[]>;
  bind?(pod: PodInfo, nodeName: string, signal: AbortSignal): Promise<void>;
}

export interface ExtenderFilterResult {
  readonly nodes: readonly NodeInfo[];
  readonly rejections: ReadonlyMap<string, Rejection>;
}
