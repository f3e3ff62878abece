/** A pod with what scheduling computes from it, once. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { type AffinityTerm, compileTerm, compileWeightedTerm } from "./affinity-term.ts";
import type { Labels } from "./label-match.ts";
import { nonZeroRequests, podRequests } from "./pod-requests.ts";
import type { Resources } from "./resources.ts";

export interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

interface AffinityTerms {
  readonly requiredAffinity: readonly AffinityTerm[];
  readonly requiredAntiAffinity: readonly AffinityTerm[];
  readonly preferredAffinity: readonly AffinityTerm[];
  readonly preferredAntiAffinity: readonly AffinityTerm[];
}

const NO_TERMS: AffinityTerms = {
  requiredAffinity: [],
  requiredAntiAffinity: [],
  preferredAffinity: [],
  preferredAntiAffinity: [],
};
const NO_LABELS: Labels = {};

export class PodInfo {
  readonly pod: Pod;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Labels;
  readonly priority: number;
  #requests: Resources | undefined;
  #nonZeroRequests: Resources | undefined;
  #hostPorts: readonly HostPort[] | undefined;
  #terms: AffinityTerms | undefined;

  constructor(pod: Pod) {
    this.pod = pod;
    this.uid = uidOf(pod);
    this.namespace = pod.metadata?.namespace ?? "";
    this.name = pod.metadata?.name ?? "";
    this.labels = pod.metadata?.labels ?? NO_LABELS;
    this.priority = pod.spec?.priority ?? 0;
  }

  /** `namespace/name` */
  get key(): string {
    return `${this.namespace}/${this.name}`;
  }

  get requests(): Resources {
    this.#requests ??= podRequests(this.pod);
    return this.#requests;
  }

  /** The requests with defaults for containers without any. */
  get nonZeroRequests(): Resources {
    this.#nonZeroRequests ??= nonZeroRequests(this.pod);
    return this.#nonZeroRequests;
  }

  get hostPorts(): readonly HostPort[] {
    this.#hostPorts ??= hostPortsOf(this.pod);
    return this.#hostPorts;
  }

  get terms(): AffinityTerms {
    this.#terms ??= compileTerms(this.pod);
    return this.#terms;
  }
}

/** Pods of tests may have no uid. */
export function uidOf({ metadata }: Pod): string {
  return metadata?.uid ?? `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** Terminated pods use no resources. */
export function isTerminated(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

export function isAssigned(pod: Pod): boolean {
  return (pod.spec?.nodeName ?? "") !== "";
}

/** Of containers, and of init containers that keep running. */
function hostPortsOf(pod: Pod): readonly HostPort[] {
  const sidecars = (pod.spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...(pod.spec?.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports
      .filter(({ hostPort = 0 }) => hostPort > 0)
      .map(({ protocol, hostIP, hostPort = 0 }) => ({
        protocol: protocol ?? "TCP",
        ip: hostIP === undefined || hostIP === "" ? "0.0.0.0" : hostIP,
        port: hostPort,
      })),
  );
}

/** A host port is in use per protocol and address; the wildcard address conflicts with all. */
export function portsConflict(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  return a.ip === b.ip || a.ip === "0.0.0.0" || b.ip === "0.0.0.0";
}

function compileTerms(pod: Pod): AffinityTerms {
  const { podAffinity, podAntiAffinity } = pod.spec?.affinity ?? {};
  if (podAffinity === undefined && podAntiAffinity === undefined) return NO_TERMS;
  const owner = { namespace: pod.metadata?.namespace ?? "", labels: pod.metadata?.labels ?? NO_LABELS };
  return {
    requiredAffinity: (podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
      compileTerm(term, owner),
    ),
    requiredAntiAffinity: (podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
      compileTerm(term, owner),
    ),
    preferredAffinity: (podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
      compileWeightedTerm(term, owner),
    ),
    preferredAntiAffinity: (podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
      compileWeightedTerm(term, owner),
    ),
  };
}
