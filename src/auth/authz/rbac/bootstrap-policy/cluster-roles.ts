/** The bootstrap cluster roles, in Kubernetes' order. */
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import { ALL, aggregate, allowPaths, allowResources, clusterRole, READ, REPORT, WRITE } from "./define.ts";

export const clusterRoles: readonly ClusterRole[] = [
  aggregate("admin", "admin"),
  clusterRole("cluster-admin", [allowResources("*", "*", "*"), allowPaths("*", "*")]),
  aggregate("edit", "edit", "admin"),
  clusterRole(
    "system:aggregate-to-admin",
    [
      allowResources("authorization.svc.io", "localsubjectaccessreviews", "create"),
      allowResources("rbac.authorization.svc.io", "rolebindings roles", ALL),
    ],
    "admin",
  ),
  clusterRole(
    "system:aggregate-to-edit",
    [
      allowResources("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
      allowResources("core", "serviceaccounts", "impersonate"),
      allowResources("core", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
      allowResources("core", "pods/eviction", "create"),
      allowResources(
        "core",
        `configmaps endpoints events persistentvolumeclaims replicationcontrollers
        replicationcontrollers/scale secrets serviceaccounts services services/proxy`,
        WRITE,
      ),
      allowResources("core", "serviceaccounts/token", "create"),
      allowResources(
        "apps",
        `daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale
        statefulsets statefulsets/scale`,
        WRITE,
      ),
      allowResources("autoscaling", "horizontalpodautoscalers", WRITE),
      allowResources("batch", "cronjobs jobs", WRITE),
      allowResources(
        "extensions",
        `daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies
        replicasets replicasets/scale replicationcontrollers/scale`,
        WRITE,
      ),
      allowResources("policy", "poddisruptionbudgets", WRITE),
      allowResources("networking.svc.io", "ingresses networkpolicies", WRITE),
      allowResources("coordination.svc.io", "leases", ALL),
    ],
    "edit",
  ),
  clusterRole(
    "system:aggregate-to-view",
    [
      allowResources(
        "core",
        `configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods
        replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status`,
        READ,
      ),
      allowResources(
        "core",
        `bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status
        resourcequotas resourcequotas/status`,
        READ,
      ),
      allowResources("core", "namespaces", READ),
      allowResources("discovery.svc.io", "endpointslices", READ),
      allowResources(
        "apps",
        `controllerrevisions daemonsets daemonsets/status deployments deployments/scale
        deployments/status replicasets replicasets/scale replicasets/status statefulsets
        statefulsets/scale statefulsets/status`,
        READ,
      ),
      allowResources("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
      allowResources("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
      allowResources(
        "extensions",
        `daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses
        ingresses/status networkpolicies replicasets replicasets/scale replicasets/status
        replicationcontrollers/scale`,
        READ,
      ),
      allowResources("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
      allowResources("networking.svc.io", "ingresses ingresses/status networkpolicies", READ),
    ],
    "view",
  ),
  clusterRole("system:auth-delegator", [
    allowResources("authentication.svc.io", "tokenreviews", "create"),
    allowResources("authorization.svc.io", "subjectaccessreviews", "create"),
  ]),
  clusterRole("system:basic-user", [
    allowResources("authorization.svc.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
    allowResources("authentication.svc.io", "selfsubjectreviews", "create"),
  ]),
  clusterRole("system:certificates.k8s.io:certificatesigningrequests:nodeclient", [
    allowResources("certificates.svc.io", "certificatesigningrequests/nodeclient", "create"),
  ]),
  clusterRole("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", [
    allowResources("certificates.svc.io", "certificatesigningrequests/selfnodeclient", "create"),
  ]),
  clusterRole("system:certificates.k8s.io:kube-apiserver-client-approver", [
    allowResources("certificates.svc.io", "signers", "approve", "kubernetes.io/kube-apiserver-client"),
  ]),
  clusterRole("system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", [
    allowResources("certificates.svc.io", "signers", "approve", "kubernetes.io/kube-apiserver-client-kubelet"),
  ]),
  clusterRole("system:certificates.k8s.io:kubelet-serving-approver", [
    allowResources("certificates.svc.io", "signers", "approve", "kubernetes.io/kubelet-serving"),
  ]),
  clusterRole("system:certificates.k8s.io:legacy-unknown-approver", [
    allowResources("certificates.svc.io", "signers", "approve", "kubernetes.io/legacy-unknown"),
  ]),
  clusterRole("system:discovery", [
    allowPaths(`/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/`),
  ]),
  clusterRole("system:heapster", [
    allowResources("core", "events namespaces nodes pods", READ),
    allowResources("extensions", "deployments", READ),
  ]),
  // As in metrics-server's manifest: the server itself serves these resources.
  clusterRole(
    "system:aggregated-metrics-reader",
    [allowResources("metrics.svc.io", "nodes pods", READ)],
    "admin edit view",
  ),
  clusterRole("system:kube-aggregator", [allowResources("core", "endpoints services", READ)]),
  clusterRole("system:kube-controller-manager", [
    allowResources("core events.svc.io", "events", REPORT),
    allowResources("coordination.svc.io", "leases", "create"),
    allowResources("coordination.svc.io", "leases", "get update", "kube-controller-manager"),
    allowResources("core", "secrets serviceaccounts", "create"),
    allowResources("core", "secrets", "delete"),
    allowResources("core", "configmaps namespaces secrets serviceaccounts", "get"),
    allowResources("core", "secrets serviceaccounts", "update"),
    allowResources("authentication.svc.io", "tokenreviews", "create"),
    allowResources("authorization.svc.io", "subjectaccessreviews", "create"),
    allowResources("*", "*", "list watch"),
    allowResources("core", "serviceaccounts/token", "create"),
  ]),
  clusterRole("system:kube-dns", [allowResources("core", "endpoints services", "list watch")]),
  clusterRole("system:kube-scheduler", [
    allowResources("core events.svc.io", "events", REPORT),
    allowResources("coordination.svc.io", "leases", "create"),
    allowResources("coordination.svc.io", "leases", "get list update watch", "kube-scheduler"),
    allowResources("coordination.svc.io", "leasecandidates", ALL),
    allowResources("core", "nodes", READ),
    allowResources("core", "pods", "delete get list watch"),
    allowResources("core", "bindings pods/binding", "create"),
    allowResources("core", "pods/status", "patch update"),
    allowResources("core", "replicationcontrollers services", READ),
    allowResources("apps extensions", "replicasets", READ),
    allowResources("apps", "statefulsets", READ),
    allowResources("policy", "poddisruptionbudgets", READ),
    allowResources("core", "persistentvolumeclaims persistentvolumes", READ),
    allowResources("authentication.svc.io", "tokenreviews", "create"),
    allowResources("authorization.svc.io", "subjectaccessreviews", "create"),
    allowResources("storage.svc.io", "csinodes", READ),
    allowResources("storage.svc.io", "volumeattachments", READ),
    allowResources("core", "namespaces", READ),
    allowResources("storage.svc.io", "csidrivers", READ),
    allowResources("storage.svc.io", "csistoragecapacities", READ),
  ]),
  clusterRole("system:kubelet-api-admin", [
    allowResources("core", "nodes", READ),
    allowResources("core", "nodes", "proxy"),
    allowResources("core", "nodes/log nodes/metrics nodes/proxy nodes/stats", "*"),
    allowResources("core", "nodes/configz nodes/healthz nodes/pods", "*"),
  ]),
  clusterRole("system:monitoring", [
    allowPaths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
  ]),
  clusterRole("system:node", [
    allowResources("authentication.svc.io", "tokenreviews", "create"),
    allowResources("authorization.svc.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    allowResources("core", "services", READ),
    allowResources("core", "nodes", "create get list watch"),
    allowResources("core", "nodes/status", "patch update"),
    allowResources("core", "nodes", "patch update"),
    allowResources("core", "events", REPORT),
    allowResources("core", "pods", READ),
    allowResources("core", "pods", "create delete"),
    allowResources("core", "pods/status", "patch update"),
    allowResources("core", "pods/eviction", "create"),
    allowResources("core", "configmaps secrets", READ),
    allowResources("core", "persistentvolumeclaims persistentvolumes", "get"),
    allowResources("core", "endpoints", "get"),
    allowResources("certificates.svc.io", "certificatesigningrequests", "create get list watch"),
    allowResources("coordination.svc.io", "leases", "create delete get patch update"),
    allowResources("storage.svc.io", "volumeattachments", "get"),
    allowResources("core", "serviceaccounts/token", "create"),
    allowResources("core", "persistentvolumeclaims/status", "get patch update"),
    allowResources("storage.svc.io", "csidrivers", READ),
    allowResources("storage.svc.io", "csinodes", "create delete get patch update"),
    allowResources("node.svc.io", "runtimeclasses", READ),
  ]),
  clusterRole("system:node-bootstrapper", [
    allowResources("certificates.svc.io", "certificatesigningrequests", "create get list watch"),
  ]),
  clusterRole("system:node-problem-detector", [
    allowResources("core", "nodes", "get"),
    allowResources("core", "nodes/status", "patch"),
    allowResources("core events.svc.io", "events", REPORT),
  ]),
  clusterRole("system:node-proxier", [
    allowResources("core", "endpoints services", "list watch"),
    allowResources("core", "nodes", READ),
    allowResources("core events.svc.io", "events", REPORT),
    allowResources("networking.svc.io", "servicecidrs", "list watch"),
    allowResources("discovery.svc.io", "endpointslices", "list watch"),
  ]),
  clusterRole("system:persistent-volume-provisioner", [
    allowResources("core", "persistentvolumes", "create delete get list watch"),
    allowResources("core", "persistentvolumeclaims", "get list update watch"),
    allowResources("storage.svc.io", "storageclasses", READ),
    allowResources("core", "events", "watch"),
    allowResources("core events.svc.io", "events", REPORT),
  ]),
  clusterRole("system:public-info-viewer", [allowPaths("/healthz /livez /readyz /version /version/")]),
  clusterRole("system:service-account-issuer-discovery", [
    allowPaths(`/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks
        /openid/v1/jwks/`),
  ]),
  clusterRole("system:volume-scheduler", [
    allowResources("core", "persistentvolumes", "get list patch update watch"),
    allowResources("storage.svc.io", "storageclasses", READ),
    allowResources("core", "persistentvolumeclaims", "get list patch update watch"),
  ]),
  aggregate("view", "view", "edit"),
];
