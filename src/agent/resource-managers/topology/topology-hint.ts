/** What the managers of resources and the topology manager exchange. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { NumaMask } from "./numa-mask.ts";

export interface TopologyHint {
  /** NUMA nodes from which a request can be satisfied; undefined: any. */
  readonly affinity: NumaMask | undefined;
  readonly isPreferred: boolean;
}

/**
 * By resource: from which nodes the request can be satisfied. No entry at all, and an undefined one, have no
 * preference; an empty list cannot be satisfied.
 */
export type ResourceHints = Readonly<Record<string, readonly TopologyHint[] | undefined>>;

/** A manager of resources that lie on NUMA nodes. */
export interface HintProvider {
  getTopologyHints(pod: Pod, container: Container): ResourceHints;
  /** For all containers of the pod together. */
  getPodTopologyHints(pod: Pod): ResourceHints;
  /** Allocates the resources that the container requests, or finds them allocated. Rejects with the reason. */
  allocate(pod: Pod, container: Container): void | Promise<void>;
}

/** The nodes that the topology manager chose for a container. */
export interface AffinityStore {
  getAffinity(uid: string, container: string): TopologyHint;
}

/** Why a pod is not admitted, with the reason in its status. Other errors are reported as unexpected. */
export class AdmissionError extends Error {
  override readonly name = "AdmissionError";
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}
