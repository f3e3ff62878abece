/** The names of controllers on the command line: those of Kubernetes 1.33 with their aliases, and our own. */
import { controllerNames } from "../controllers/controller-manager.ts";

/** Kubernetes' name → the one in this program, where it differs from the name without `-controller`. */
const ownNames: Readonly<Record<string, string>> = {
  "bootstrap-signer-controller": "bootstrapsigner",
  "certificatesigningrequest-approving-controller": "csrapproving",
  "certificatesigningrequest-cleaner-controller": "csrcleaner",
  "certificatesigningrequest-signing-controller": "csrsigning",
  "endpoints-controller": "endpoint",
  "endpointslice-mirroring-controller": "endpointslicemirroring",
  "horizontal-pod-autoscaler-controller": "horizontalpodautoscaling",
  "legacy-service-account-token-cleaner": "legacy-serviceaccount-token-cleaner",
  "node-ipam-controller": "nodeipam",
  nodelifecycle: "node-lifecycle",
  "persistentvolume-attach-detach-controller": "attachdetach",
  "persistentvolume-protection-controller": "pv-protection",
  "persistentvolumeclaim-protection-controller": "pvc-protection",
  "pod-garbage-collector-controller": "podgc",
  "resource-claim-controller": "resourceclaim",
  "root-ca-cert-publisher": "root-ca-certificate-publisher",
  "service-lb-controller": "service",
  "storage-version-gc": "storageversion-garbage-collector",
  "token-cleaner-controller": "tokencleaner",
  garbagecollector: "garbage-collector",
};

/** Controllers of Kubernetes 1.33 that this program has not: their work is done elsewhere, or not at all. */
const ABSENT = [
  "cloud-node-lifecycle-controller",
  "kube-apiserver-serving-clustertrustbundle-publisher-controller",
  "node-route-controller",
  "route",
  "selinux-warning-controller",
];

/** A part of the controller of the node lifecycle, which the list can disable. */
const TAINT_EVICTION = "taint-eviction-controller";

/** Those that `*` does not include. The scheduler is a program of its own. */
const OFF_BY_DEFAULT = ["bootstrapsigner", "local-path-provisioner", "scheduler", "service", "tokencleaner"];

export interface SelectedControllers {
  readonly names: readonly string[];
  /** Whether the list has the controller that evicts pods for taints, which runs with that of the node lifecycle. */
  readonly evictsPods: boolean;
  /** Names in the list that no controller has. */
  readonly unknown: readonly string[];
  /** Names in the list that only Kubernetes' controller manager has. */
  readonly absent: readonly string[];
}

/** As Kubernetes: the first of a name, the name with a dash before it, and `*` decides. */
export function selectControllers(list: readonly string[]): SelectedControllers {
  const words = list.filter((word) => word !== "*").map((word) => word.replace(/^-/, ""));
  const unresolved = words.filter((word) => resolveName(word) === undefined);
  const decisions = list.map((word) => (word.startsWith("-") ? `-${resolveName(word.slice(1))}` : resolveName(word)));
  const isSelected = (name: string): boolean => {
    const decision = decisions.find((word) => word === name || word === `-${name}`);
    if (decision !== undefined) return decision === name;
    return list.includes("*") && !OFF_BY_DEFAULT.includes(name);
  };
  return {
    names: controllerNames.filter(isSelected),
    evictsPods: isSelected(TAINT_EVICTION),
    unknown: unresolved.filter((word) => !isOfKubernetes(word)),
    absent: unresolved.filter(isOfKubernetes),
  };
}

function isOfKubernetes(word: string): boolean {
  return ABSENT.includes(word) || Object.hasOwn(ownNames, word);
}

function resolveName(word: string): string | undefined {
  if (word === TAINT_EVICTION) return word;
  const candidates = [word, ownNames[word], word.replace(/-controller$/, "")];
  return candidates.find((name) => name !== undefined && controllerNames.includes(name) && name !== "scheduler");
}
