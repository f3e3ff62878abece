import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Attributes } from "../../user.ts";
import { type NodeAuthorizerOptions, nodeAuthorizer } from "./node.ts";
import { createNodeGraph } from "./node-graph.ts";

const mine: Pod = {
  metadata: { namespace: "ns", name: "mine" },
  spec: {
    nodeName: "n1",
    serviceAccountName: "sa",
    imagePullSecrets: [{ name: "pull" }],
    containers: [
      {
        name: "c",
        envFrom: [{ configMapRef: { name: "env" } }, { secretRef: { name: "env-secret" } }],
        env: [
          { name: "A", valueFrom: { secretKeyRef: { name: "key-secret", key: "k" } } },
          { name: "B", valueFrom: { configMapKeyRef: { name: "key-map", key: "k" } } },
        ],
      },
    ],
    volumes: [
      { name: "a", configMap: { name: "used" } },
      { name: "b", secret: { secretName: "sec" } },
      { name: "p", persistentVolumeClaim: { claimName: "pvc" } },
      { name: "j", projected: { sources: [{ configMap: { name: "pro-map" } }, { secret: { name: "pro-secret" } }] } },
    ],
  },
};
const theirs: Pod = { metadata: { namespace: "ns", name: "theirs" }, spec: { nodeName: "n2", containers: [] } };

function attributesOf(node: string, verb: string, what: string, more: Partial<Attributes> = {}): Attributes {
  const [resource = "", name = "", subresource = ""] = what.split("/");
  const user = { name: `system:node:${node}`, uid: "", groups: ["system:nodes"], extra: {} };
  const base = { user, verb, isResourceRequest: true, namespace: "ns", apiGroup: "", apiVersion: "v1", path: "/" };
  return { ...base, resource, name, subresource, ...more };
}

const lease = { apiGroup: "coordination.k8s.io", namespace: "kube-node-lease" };
const cluster = { namespace: "" };

const allowed: readonly Attributes[] = [
  attributesOf("n1", "get", "configmaps/used"),
  attributesOf("n1", "watch", "configmaps/used"),
  attributesOf("n1", "list", "secrets/sec"),
  ...["pull", "env-secret", "key-secret", "pro-secret"].map((name) => attributesOf("n1", "get", `secrets/${name}`)),
  ...["env", "key-map", "pro-map"].map((name) => attributesOf("n1", "get", `configmaps/${name}`)),
  attributesOf("n1", "get", "persistentvolumeclaims/pvc"),
  attributesOf("n1", "create", "serviceaccounts/sa/token"),
  attributesOf("n1", "get", "nodes/n1", cluster),
  attributesOf("n1", "get", "nodes/n1/tunnel", cluster),
  attributesOf("n1", "create", "nodes", cluster),
  attributesOf("n1", "patch", "nodes/n1/status", cluster),
  attributesOf("n1", "patch", "nodes/n2/status", cluster),
  attributesOf("n1", "list", "nodes", { ...cluster, fieldSelector: "metadata.name=n1" }),
  attributesOf("n1", "get", "pods/mine"),
  attributesOf("n1", "list", "pods", { ...cluster, fieldSelector: "spec.nodeName=n1" }),
  attributesOf("n1", "watch", "pods", { fieldSelector: "status.phase!=Failed,spec.nodeName==n1" }),
  attributesOf("n1", "create", "pods"),
  attributesOf("n1", "patch", "pods/mine/status"),
  attributesOf("n1", "delete", "pods/mine"),
  attributesOf("n1", "delete", "pods/theirs"),
  attributesOf("n1", "watch", "pods/mine"),
  attributesOf("n1", "create", "pods/mine/eviction"),
  attributesOf("n1", "create", "events"),
  attributesOf("n1", "patch", "events/e"),
  attributesOf("n1", "list", "services", cluster),
  attributesOf("n1", "create", "leases", lease),
  attributesOf("n1", "update", "leases/n1", lease),
  attributesOf("n1", "update", "leases/n1", { ...lease, apiGroup: "coordination.svc.io" }),
];

const relation = "no relationship found between node 'n1' and this object";
const rejected: readonly (readonly [Attributes, string])[] = [
  [attributesOf("n1", "get", "configmaps/unused"), relation],
  [attributesOf("n1", "get", "configmaps/used", { namespace: "other" }), relation],
  [attributesOf("n2", "get", "secrets/sec"), "no relationship found between node 'n2' and this object"],
  [attributesOf("n1", "list", "secrets"), "No Object name found"],
  [attributesOf("n1", "list", "configmaps", cluster), "can only read namespaced object of this type"],
  [attributesOf("n1", "update", "secrets/sec"), "can only read resources of this type"],
  [attributesOf("n1", "delete", "configmaps/used"), "can only read resources of this type"],
  [attributesOf("n1", "get", "pods/theirs"), relation],
  [attributesOf("n1", "list", "pods"), "can only list/watch pods with spec.nodeName field selector"],
  [
    attributesOf("n1", "list", "pods", { fieldSelector: "spec.nodeName=n2" }),
    "can only list/watch pods with spec.nodeName field selector",
  ],
  [
    attributesOf("n1", "list", "pods", { fieldSelector: "spec.nodeName!=n1" }),
    "can only list/watch pods with spec.nodeName field selector",
  ],
  [attributesOf("n1", "create", "pods/mine/exec"), ""],
  [attributesOf("n1", "get", "pods/mine/log"), ""],
  [attributesOf("n1", "watch", "pods/theirs"), relation],
  [attributesOf("n1", "update", "pods/mine"), ""],
  [attributesOf("n1", "deletecollection", "pods"), ""],
  [attributesOf("n1", "get", "serviceaccounts/sa"), "not allowed to get service accounts"],
  [attributesOf("n2", "create", "serviceaccounts/sa/token"), "no relationship found between node 'n2' and this object"],
  [attributesOf("n1", "list", "nodes", cluster), "node 'n1' cannot read all nodes, only its own Node object"],
  [attributesOf("n1", "get", "nodes/n2", cluster), "node 'n1' cannot read 'n2', only its own Node object"],
  [attributesOf("n1", "get", "nodes/n2/tunnel", cluster), "node 'n1' cannot read 'n2', only its own Node object"],
  [attributesOf("n1", "create", "nodes/n1/tunnel", cluster), ""],
  [attributesOf("n1", "delete", "nodes/n1", cluster), ""],
  [
    attributesOf("n1", "create", "leases", { ...lease, namespace: "default" }),
    'can only access leases in the "kube-node-lease" system namespace',
  ],
  [
    attributesOf("n1", "update", "leases/n2", lease),
    "can only access node lease with the same name as the requesting node",
  ],
  [attributesOf("n1", "list", "leases", lease), "can only get, create, update, patch, or delete a node lease"],
  [
    attributesOf("n1", "get", "csinodes/n2", { ...cluster, apiGroup: "storage.k8s.io" }),
    "can only access CSINode with the same name as the requesting node",
  ],
  [attributesOf("n1", "create", "namespaces"), ""],
  [attributesOf("", "get", "nodes/n1"), 'unknown node for user "system:node:"'],
  [{ ...attributesOf("n1", "get", ""), isResourceRequest: false, path: "/metrics" }, ""],
  [{ ...attributesOf("n1", "get", "pods/mine"), user: { name: "system:node:n1", uid: "", groups: [], extra: {} } }, ""],
  [
    { ...attributesOf("n1", "get", "pods/mine"), user: { name: "n1", uid: "", groups: ["system:nodes"], extra: {} } },
    "",
  ],
];

t.test("nodeAuthorizer() allows nodes their own objects", async (t) => {
  const graph = createNodeGraph();
  graph.putPod(mine);
  graph.putPod(theirs);
  const authorizer = nodeAuthorizer(graph);
  for (const attributes of allowed) {
    const label = `${attributes.verb} ${attributes.resource}/${attributes.name}/${attributes.subresource}`;
    t.strictSame(await authorizer.authorize(attributes), { decision: "allow", reason: "" }, label);
  }
});

t.test("nodeAuthorizer() rejects other requests with Kubernetes' messages", async (t) => {
  const graph = createNodeGraph();
  graph.putPod(mine);
  graph.putPod(theirs);
  const authorizer = nodeAuthorizer(graph);
  for (const [attributes, reason] of rejected) {
    const label = `${attributes.verb} ${attributes.resource}/${attributes.name}/${attributes.subresource}`;
    t.strictSame(await authorizer.authorize(attributes), { decision: "no-opinion", reason }, label);
  }
});

t.test("nodeAuthorizer() allows reading service accounts of pods, and all nodes and pods, by options", async (t) => {
  const graph = createNodeGraph();
  graph.putPod(mine);
  const decision = async (options: NodeAuthorizerOptions, attributes: Attributes) =>
    (await nodeAuthorizer(graph, options).authorize(attributes)).decision;
  const account = attributesOf("n1", "get", "serviceaccounts/sa");
  t.equal(await decision({ accounts: true }, account), "allow");
  t.equal(await decision({ accounts: true }, attributesOf("n2", "get", "serviceaccounts/sa")), "no-opinion");
  t.equal(await decision({ accounts: true }, attributesOf("n1", "list", "serviceaccounts")), "no-opinion");
  t.equal(await decision({}, account), "no-opinion");
  for (const attributes of [
    attributesOf("n1", "list", "nodes", cluster),
    attributesOf("n1", "list", "pods"),
    attributesOf("n1", "get", "pods/theirs"),
  ]) {
    t.equal(await decision({ selectors: false }, attributes), "allow", attributes.resource);
  }
});

t.test("createNodeGraph() follows changes and deletions of pods", async (t) => {
  const graph = createNodeGraph();
  const refers = (name: string) => graph.hasRelationship("n1", "secrets", "ns", name);
  graph.putPod(mine);
  graph.putPod({ ...mine, metadata: { namespace: "ns", name: "twin" } });
  graph.deletePod("ns", "mine");
  t.equal(refers("sec"), true, "the twin still references it");
  graph.putPod({ metadata: { namespace: "ns", name: "twin" }, spec: { nodeName: "n1", containers: [] } });
  t.equal(refers("sec"), false);
  graph.putPod({
    metadata: { namespace: "ns", name: "unbound" },
    spec: { containers: [], imagePullSecrets: [{ name: "sec" }] },
  });
  t.equal(refers("sec"), false, "no node, no relation");
  const mirror = { namespace: "ns", name: "mirror", annotations: { "kubernetes.io/config.mirror": "x" } };
  graph.putPod({ ...mine, metadata: mirror });
  t.equal(refers("sec"), false, "a node cannot give itself a secret");
  t.equal(graph.hasRelationship("n1", "pods", "ns", "mirror"), true);
  graph.deletePod("ns", "never-there");
});
