/** The cluster roles that every server has from the start, in Kubernetes' order. */
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import { ALL, aggregate, allow, clusterRole, READ, REPORT, visit, WRITE } from "./define.ts";

export const clusterRoles: readonly ClusterRole[] = [
  aggregate("admin", "admin"),
  clusterRole("cluster-admin", [allow("*", "*", "*"), visit("*", "*")]),
  aggregate("edit", "edit", "admin"),
  clusterRole(
    "system:aggregate-to-admin",
    [
      allow("authorization.svc.io", "localsubjectaccessreviews", "create"),
      allow("rbac.authorization.svc.io", "rolebindings roles", ALL),
    ],
    "admin",
  ),
  clusterRole(
    "system:aggregate-to-edit",
    [
      allow("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
      allow("core", "serviceaccounts", "impersonate"),
      allow("core", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
      allow("core", "pods/eviction", "create"),
      allow(
        "core",
        `configmaps endpoints events persistentvolumeclaims replicationcontrollers
        replicationcontrollers/scale secrets serviceaccounts services services/proxy`,
        WRITE,
      ),
      allow("core", "serviceaccounts/token", "create"),
      allow(
        "apps",
        `daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale
        statefulsets statefulsets/scale`,
        WRITE,
      ),
      allow("autoscaling", "horizontalpodautoscalers", WRITE),
      allow("batch", "cronjobs jobs", WRITE),
      allow(
        "extensions",
        `daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies
        replicasets replicasets/scale replicationcontrollers/scale`,
        WRITE,
      ),
      allow("policy", "poddisruptionbudgets", WRITE),
      allow("networking.svc.io", "ingresses networkpolicies", WRITE),
      allow("coordination.svc.io", "leases", ALL),
    ],
    "edit",
  ),
  clusterRole(
    "system:aggregate-to-view",
    [
      allow(
        "core",
        `configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods
        replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status`,
        READ,
      ),
      allow(
        "core",
        `bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status
        resourcequotas resourcequotas/status`,
        READ,
      ),
      allow("core", "namespaces", READ),
      allow("discovery.svc.io", "endpointslices", READ),
      allow(
        "apps",
        `controllerrevisions daemonsets daemonsets/status deployments deployments/scale
        deployments/status replicasets replicasets/scale replicasets/status statefulsets
        statefulsets/scale statefulsets/status`,
        READ,
      ),
      allow("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
      allow("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
      allow(
        "extensions",
        `daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses
        ingresses/status networkpolicies replicasets replicasets/scale replicasets/status
        replicationcontrollers/scale`,
        READ,
      ),
      allow("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
      allow("networking.svc.io", "ingresses ingresses/status networkpolicies", READ),
    ],
    "view",
  ),
  clusterRole("system:auth-delegator", [
    allow("authentication.svc.io", "tokenreviews", "create"),
    allow("authorization.svc.io", "subjectaccessreviews", "create"),
  ]),
  clusterRole("system:basic-user", [
    allow("authorization.svc.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
    allow("authentication.svc.io", "selfsubjectreviews", "create"),
  ]),
  clusterRole("system:certificates.k8s.io:certificatesigningrequests:nodeclient", [
    allow("certificates.svc.io", "certificatesigningrequests/nodeclient", "create"),
  ]),
  clusterRole("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", [
    allow("certificates.svc.io", "certificatesigningrequests/selfnodeclient", "create"),
  ]),
  clusterRole("system:certificates.k8s.io:kube-apiserver-client-approver", [
    allow("certificates.svc.io", "signers", "approve", "kubernetes.io/kube-apiserver-client"),
  ]),
  clusterRole("system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", [
    allow("certificates.svc.io", "signers", "approve", "kubernetes.io/kube-apiserver-client-kubelet"),
  ]),
  clusterRole("system:certificates.k8s.io:kubelet-serving-approver", [
    allow("certificates.svc.io", "signers", "approve", "kubernetes.io/kubelet-serving"),
  ]),
  clusterRole("system:certificates.k8s.io:legacy-unknown-approver", [
    allow("certificates.svc.io", "signers", "approve", "kubernetes.io/legacy-unknown"),
  ]),
  clusterRole("system:discovery", [
    visit(`/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/`),
  ]),
  clusterRole("system:heapster", [
    allow("core", "events namespaces nodes pods", READ),
    allow("extensions", "deployments", READ),
  ]),
  clusterRole("system:kube-aggregator", [allow("core", "endpoints services", READ)]),
  clusterRole("system:kube-controller-manager", [
    allow("core events.svc.io", "events", REPORT),
    allow("coordination.svc.io", "leases", "create"),
    allow("coordination.svc.io", "leases", "get update", "kube-controller-manager"),
    allow("core", "secrets serviceaccounts", "create"),
    allow("core", "secrets", "delete"),
    allow("core", "configmaps namespaces secrets serviceaccounts", "get"),
    allow("core", "secrets serviceaccounts", "update"),
    allow("authentication.svc.io", "tokenreviews", "create"),
    allow("authorization.svc.io", "subjectaccessreviews", "create"),
    allow("*", "*", "list watch"),
    allow("core", "serviceaccounts/token", "create"),
  ]),
  clusterRole("system:kube-dns", [allow("core", "endpoints services", "list watch")]),
  clusterRole("system:kube-scheduler", [
    allow("core events.svc.io", "events", REPORT),
    allow("coordination.svc.io", "leases", "create"),
    allow("coordination.svc.io", "leases", "get list update watch", "kube-scheduler"),
    allow("coordination.svc.io", "leasecandidates", ALL),
    allow("core", "nodes", READ),
    allow("core", "pods", "delete get list watch"),
    allow("core", "bindings pods/binding", "create"),
    allow("core", "pods/status", "patch update"),
    allow("core", "replicationcontrollers services", READ),
    allow("apps extensions", "replicasets", READ),
    allow("apps", "statefulsets", READ),
    allow("policy", "poddisruptionbudgets", READ),
    allow("core", "persistentvolumeclaims persistentvolumes", READ),
    allow("authentication.svc.io", "tokenreviews", "create"),
    allow("authorization.svc.io", "subjectaccessreviews", "create"),
    allow("storage.svc.io", "csinodes", READ),
    allow("storage.svc.io", "volumeattachments", READ),
    allow("core", "namespaces", READ),
    allow("storage.svc.io", "csidrivers", READ),
    allow("storage.svc.io", "csistoragecapacities", READ),
  ]),
  clusterRole("system:kubelet-api-admin", [
    allow("core", "nodes", READ),
    allow("core", "nodes", "proxy"),
    allow("core", "nodes/log nodes/metrics nodes/proxy nodes/stats", "*"),
    allow("core", "nodes/configz nodes/healthz nodes/pods", "*"),
  ]),
  clusterRole("system:monitoring", [
    visit("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
  ]),
  clusterRole("system:node", [
    allow("authentication.svc.io", "tokenreviews", "create"),
    allow("authorization.svc.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    allow("core", "services", READ),
    allow("core", "nodes", "create get list watch"),
    allow("core", "nodes/status", "patch update"),
    allow("core", "nodes", "patch update"),
    allow("core", "events", REPORT),
    allow("core", "pods", READ),
    allow("core", "pods", "create delete"),
    allow("core", "pods/status", "patch update"),
    allow("core", "pods/eviction", "create"),
    allow("core", "configmaps secrets", READ),
    allow("core", "persistentvolumeclaims persistentvolumes", "get"),
    allow("core", "endpoints", "get"),
    allow("certificates.svc.io", "certificatesigningrequests", "create get list watch"),
    allow("coordination.svc.io", "leases", "create delete get patch update"),
    allow("storage.svc.io", "volumeattachments", "get"),
    allow("core", "serviceaccounts/token", "create"),
    allow("core", "persistentvolumeclaims/status", "get patch update"),
    allow("storage.svc.io", "csidrivers", READ),
    allow("storage.svc.io", "csinodes", "create delete get patch update"),
    allow("node.svc.io", "runtimeclasses", READ),
  ]),
  clusterRole("system:node-bootstrapper", [
    allow("certificates.svc.io", "certificatesigningrequests", "create get list watch"),
  ]),
  clusterRole("system:node-problem-detector", [
    allow("core", "nodes", "get"),
    allow("core", "nodes/status", "patch"),
    allow("core events.svc.io", "events", REPORT),
  ]),
  clusterRole("system:node-proxier", [
    allow("core", "endpoints services", "list watch"),
    allow("core", "nodes", READ),
    allow("core events.svc.io", "events", REPORT),
    allow("networking.svc.io", "servicecidrs", "list watch"),
    allow("discovery.svc.io", "endpointslices", "list watch"),
  ]),
  clusterRole("system:persistent-volume-provisioner", [
    allow("core", "persistentvolumes", "create delete get list watch"),
    allow("core", "persistentvolumeclaims", "get list update watch"),
    allow("storage.svc.io", "storageclasses", READ),
    allow("core", "events", "watch"),
    allow("core events.svc.io", "events", REPORT),
  ]),
  clusterRole("system:public-info-viewer", [visit("/healthz /livez /readyz /version /version/")]),
  clusterRole("system:service-account-issuer-discovery", [
    visit(`/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks
        /openid/v1/jwks/`),
  ]),
  clusterRole("system:volume-scheduler", [
    allow("core", "persistentvolumes", "get list patch update watch"),
    allow("storage.svc.io", "storageclasses", READ),
    allow("core", "persistentvolumeclaims", "get list patch update watch"),
  ]),
  aggregate("view", "view", "edit"),
];
