/**
 * What is granted before anybody has granted anything: Kubernetes' bootstrap roles and bindings, those of them whose
 * subjects exist from the start. Each line is `[groups] [resources] [verbs]`, in Kubernetes' order.
 */
import { AUTHENTICATED, MASTERS, type PolicyRule, UNAUTHENTICATED } from "../user.ts";
import { type Grant, type RuleSource, type Subject, subjectOf } from "./rbac.ts";

const READ = ["get", "list", "watch"] as const;
const WRITE = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;
const REPORT = ["create", "patch", "update"] as const;

const AUTHENTICATION = "authentication.svc.io";
const AUTHORIZATION = "authorization.svc.io";
const CERTIFICATES = "certificates.svc.io";
const COORDINATION = "coordination.svc.io";
const EVENTS = "events.svc.io";
const NODE = "node.svc.io";
const STORAGE = "storage.svc.io";

const list = (text: string): readonly string[] => text.split(" ");
const allow = (group: string, resources: string, verbs: readonly string[]): PolicyRule => ({
  apiGroups: [group],
  resources: list(resources),
  verbs,
});
const visit = (paths: string): PolicyRule => ({ nonResourceURLs: list(paths), verbs: ["get"] });

const PUBLIC_PATHS = "/healthz /livez /readyz /version /version/";

export const bootstrapRoles: Readonly<Record<string, readonly PolicyRule[]>> = {
  "cluster-admin": [
    { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
    { nonResourceURLs: ["*"], verbs: ["*"] },
  ],
  "system:basic-user": [
    allow(AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews", ["create"]),
    allow(AUTHENTICATION, "selfsubjectreviews", ["create"]),
  ],
  "system:discovery": [
    visit("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
  ],
  "system:public-info-viewer": [visit(PUBLIC_PATHS)],
  "system:kube-scheduler": [
    { apiGroups: ["", EVENTS], resources: ["events"], verbs: REPORT },
    allow(COORDINATION, "leases", ["create"]),
    {
      apiGroups: [COORDINATION],
      resources: ["leases"],
      resourceNames: ["kube-scheduler"],
      verbs: ["get", "list", "update", "watch"],
    },
    allow(COORDINATION, "leasecandidates", WRITE),
    allow("", "nodes", READ),
    allow("", "pods", ["delete", ...READ]),
    allow("", "bindings pods/binding", ["create"]),
    allow("", "pods/status", ["patch", "update"]),
    allow("", "replicationcontrollers services", READ),
    { apiGroups: ["apps", "extensions"], resources: ["replicasets"], verbs: READ },
    allow("apps", "statefulsets", READ),
    allow("policy", "poddisruptionbudgets", READ),
    allow("", "persistentvolumeclaims persistentvolumes", READ),
    allow(AUTHENTICATION, "tokenreviews", ["create"]),
    allow(AUTHORIZATION, "subjectaccessreviews", ["create"]),
    allow(STORAGE, "csinodes", READ),
    allow(STORAGE, "volumeattachments", READ),
    allow("", "namespaces", READ),
    allow(STORAGE, "csidrivers", READ),
    allow(STORAGE, "csistoragecapacities", READ),
  ],
  "system:controller:namespace-controller": [
    allow("", "namespaces", ["delete", ...READ]),
    allow("", "namespaces/finalize namespaces/status", ["update"]),
    // Reports what is left with a patch, where Kubernetes' controller replaces the status.
    allow("", "namespaces/status", ["patch"]),
    allow("*", "*", ["delete", "deletecollection", ...READ]),
  ],
  "system:volume-scheduler": [
    allow("", "persistentvolumes", ["get", "list", "patch", "update", "watch"]),
    allow(STORAGE, "storageclasses", READ),
    allow("", "persistentvolumeclaims", ["get", "list", "patch", "update", "watch"]),
  ],
  "system:node": [
    allow(AUTHENTICATION, "tokenreviews", ["create"]),
    allow(AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews", ["create"]),
    allow("", "services", READ),
    allow("", "nodes", ["create", ...READ]),
    allow("", "nodes/status", ["patch", "update"]),
    allow("", "nodes", ["patch", "update"]),
    allow("", "events", REPORT),
    allow("", "pods", READ),
    allow("", "pods", ["create", "delete"]),
    allow("", "pods/status", ["patch", "update"]),
    allow("", "pods/eviction", ["create"]),
    allow("", "configmaps secrets", READ),
    allow("", "persistentvolumeclaims persistentvolumes", ["get"]),
    allow("", "endpoints", ["get"]),
    allow(CERTIFICATES, "certificatesigningrequests", ["create", ...READ]),
    allow(COORDINATION, "leases", ["create", "delete", "get", "patch", "update"]),
    allow(STORAGE, "volumeattachments", ["get"]),
    allow("", "serviceaccounts/token", ["create"]),
    allow("", "persistentvolumeclaims/status", ["get", "patch", "update"]),
    allow(STORAGE, "csidrivers", READ),
    allow(STORAGE, "csinodes", ["create", "delete", "get", "patch", "update"]),
    allow(NODE, "runtimeclasses", READ),
  ],
};

interface Binding {
  readonly name: string;
  readonly role: string;
  readonly subjects: readonly Subject[];
}

const group = (name: string): Subject => ({ kind: "Group", name });
const scheduler: Subject = { kind: "User", name: "system:kube-scheduler" };

/** `system:node` is bound to nobody: the Node authorizer reads its rules. */
export const bootstrapBindings: readonly Binding[] = [
  { name: "cluster-admin", role: "cluster-admin", subjects: [group(MASTERS)] },
  { name: "system:basic-user", role: "system:basic-user", subjects: [group(AUTHENTICATED)] },
  { name: "system:discovery", role: "system:discovery", subjects: [group(AUTHENTICATED)] },
  {
    name: "system:controller:namespace-controller",
    role: "system:controller:namespace-controller",
    subjects: [{ kind: "User", name: "system:serviceaccount:kube-system:namespace-controller" }],
  },
  { name: "system:kube-scheduler", role: "system:kube-scheduler", subjects: [scheduler] },
  {
    name: "system:public-info-viewer",
    role: "system:public-info-viewer",
    subjects: [group(AUTHENTICATED), group(UNAUTHENTICATED)],
  },
  { name: "system:volume-scheduler", role: "system:volume-scheduler", subjects: [scheduler] },
];

export const bootstrapPolicy: RuleSource = {
  *grantsFor(user): Generator<Grant> {
    for (const { name, role, subjects } of bootstrapBindings) {
      const subject = subjectOf(user, subjects);
      if (subject === undefined) continue;
      const by = `ClusterRoleBinding "${name}" of ClusterRole "${role}" to ${subject.kind} "${subject.name}"`;
      yield { rules: bootstrapRoles[role]!, by };
    }
  },
};
