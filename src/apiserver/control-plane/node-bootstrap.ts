/**
 * The objects that nodes need to join a cluster: RBAC bindings for bootstrap tokens and node certificates, and the
 * public ConfigMap `cluster-info` with the cluster's CA.
 */
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import { roleKind } from "../../api/rbac/role/kind.ts";
import { roleBindingKind } from "../../api/rbac/role-binding/kind.ts";
import { ANONYMOUS, NODES } from "../../auth/user.ts";
import { renderKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import type { Registries } from "../../registry/registries.ts";
import { ensure, systemScope } from "./ensure.ts";

/** The group of bootstrap tokens that `svc token create` creates. */
export const BOOTSTRAP_GROUP = "system:bootstrappers:svc:default-node-token";
export const CLUSTER_INFO = { namespace: "kube-public", name: "cluster-info" } as const;

/** The flag of agents that enforce network policies. */
export const ENFORCE_POLICIES = "--network-policy";

/** The key of the flags of agents that join. */
export const AGENT_FLAGS = "agent-flags";

const GROUP = "rbac.authorization.svc.io";
const REQUESTS = "system:certificates.k8s.io:certificatesigningrequests";

const group = (name: string) => ({ kind: "Group", apiGroup: GROUP, name });

const bindings = [
  { name: "svc:node-bootstrapper", to: "system:node-bootstrapper", subject: group(BOOTSTRAP_GROUP) },
  { name: "svc:node-autoapprove-bootstrap", to: `${REQUESTS}:nodeclient`, subject: group(BOOTSTRAP_GROUP) },
  { name: "svc:node-autoapprove-certificate-rotation", to: `${REQUESTS}:selfnodeclient`, subject: group(NODES) },
  // Agents watch services and their endpoints: for the DNS of the cluster, and as a service proxy.
  { name: "svc:node-proxier", to: "system:node-proxier", subject: group(NODES) },
  {
    name: "svc:node-serving-approver",
    to: "system:certificates.k8s.io:kubelet-serving-approver",
    subject: { kind: "ServiceAccount", namespace: "kube-system", name: "certificate-controller" },
  },
];

export interface ClusterInfo {
  /** `https://host:6443` */
  readonly server: string;
  /** PEM. */
  readonly ca: string;
  /** PEM: the CA of the clients of node agents, when it differs. */
  readonly agentCa?: string | undefined;
  /** Of `svc agent`, for the network of the cluster. */
  readonly agentFlags?: readonly string[] | undefined;
}

/** Creates missing objects; changed ones are left as they are. */
export async function ensureNodeBootstrap(
  registries: Registries,
  info: ClusterInfo | undefined,
  signal: AbortSignal,
): Promise<void> {
  const clusterScope = { ...systemScope("", signal), group: GROUP };
  for (const { name, to, subject } of bindings) {
    const roleRef = { apiGroup: GROUP, kind: "ClusterRole", name: to };
    const wanted = { metadata: { name }, roleRef, subjects: [subject] };
    await ensure(registries.of(clusterRoleBindingKind), clusterScope, wanted);
  }
  if (info?.agentFlags?.includes(ENFORCE_POLICIES)) await allowNetworkPolicies(registries, signal);
  if (info !== undefined) await publishClusterInfo(registries, info, signal);
}

/** Rules about pods of other nodes need their labels and addresses. */
async function allowNetworkPolicies(registries: Registries, signal: AbortSignal): Promise<void> {
  const clusterScope = { ...systemScope("", signal), group: GROUP };
  const metadata = { name: "svc:node-network-policy" };
  const verbs = ["list", "watch"];
  const rules = [
    { verbs, apiGroups: ["networking.svc.io"], resources: ["networkpolicies"] },
    { verbs, apiGroups: [""], resources: ["namespaces", "pods"] },
  ];
  await ensure(registries.of(clusterRoleKind), clusterScope, { metadata, rules });
  const roleRef = { apiGroup: GROUP, kind: "ClusterRole", name: metadata.name };
  await ensure(registries.of(clusterRoleBindingKind), clusterScope, { metadata, roleRef, subjects: [group(NODES)] });
}

/** Publishes a kubeconfig without a user that anonymous clients may read, as `kubeadm` does. */
async function publishClusterInfo(registries: Registries, info: ClusterInfo, signal: AbortSignal): Promise<void> {
  const { namespace, name } = CLUSTER_INFO;
  const scope = systemScope(namespace, signal);
  const rules = [{ verbs: ["get"], apiGroups: [""], resources: ["configmaps"], resourceNames: [name] }];
  const metadata = { namespace, name: "svc:cluster-info" };
  await ensure(registries.of(roleKind), { ...scope, group: GROUP }, { metadata, rules });
  await ensure(
    registries.of(roleBindingKind),
    { ...scope, group: GROUP },
    {
      metadata,
      roleRef: { apiGroup: GROUP, kind: "Role", name: metadata.name },
      subjects: [{ kind: "User", apiGroup: GROUP, name: ANONYMOUS }],
    },
  );
  const { server, ca, agentCa, agentFlags } = info;
  const kubeconfig = renderKubeconfig({ server, ca, cluster: "svc", user: "", context: "svc" });
  const data = {
    kubeconfig,
    ...(agentCa === undefined ? {} : { "agent-ca.crt": agentCa }),
    ...(agentFlags === undefined ? {} : { [AGENT_FLAGS]: agentFlags.join(" ") }),
  };
  await ensure(registries.of(configMapKind), scope, { metadata: CLUSTER_INFO, data }, (found) =>
    Object.entries(data).every(([key, value]) => found.data?.[key] === value)
      ? undefined
      : { ...found, data: { ...found.data, ...data } },
  );
}
