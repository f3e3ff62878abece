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

function ask(node: string, verb: string, what: string, more: Partial<Attributes> = {}): Attributes {
  const [resource = "", name = "", subresource = ""] = what.split("/");
  const user = { name: `system:node:${node}`, uid: "", groups: ["system:nodes"], extra: {} };
  const base = { user, verb, isResourceRequest: true, namespace: "ns", apiGroup: "", apiVersion: "v1", path: "/" };
  return { ...base, resource, name, subresource, ...more };
}

const lease = { apiGroup: "coordination.k8s.io", namespace: "kube-node-lease" };
const cluster = { namespace: "" };

const allowed: readonly Attributes[] = [
  ask("n1", "get", "configmaps/used"),
  ask("n1", "watch", "configmaps/used"),
  ask("n1", "list", "secrets/sec"),
  ...["pull", "env-secret", "key-secret", "pro-secret"].map((name) => ask("n1", "get", `secrets/${name}`)),
  ...["env", "key-map", "pro-map"].map((name) => ask("n1", "get", `configmaps/${name}`)),
  ask("n1", "get", "persistentvolumeclaims/pvc"),
  ask("n1", "create", "serviceaccounts/sa/token"),
  ask("n1", "get", "nodes/n1", cluster),
  ask("n1", "create", "nodes", cluster),
  ask("n1", "patch", "nodes/n1/status", cluster),
  ask("n1", "patch", "nodes/n2/status", cluster),
  ask("n1", "list", "nodes", { ...cluster, fieldSelector: "metadata.name=n1" }),
  ask("n1", "get", "pods/mine"),
  ask("n1", "list", "pods", { ...cluster, fieldSelector: "spec.nodeName=n1" }),
  ask("n1", "watch", "pods", { fieldSelector: "status.phase!=Failed,spec.nodeName==n1" }),
  ask("n1", "create", "pods"),
  ask("n1", "patch", "pods/mine/status"),
  ask("n1", "delete", "pods/mine"),
  ask("n1", "delete", "pods/theirs"),
  ask("n1", "watch", "pods/mine"),
  ask("n1", "create", "pods/mine/eviction"),
  ask("n1", "create", "events"),
  ask("n1", "patch", "events/e"),
  ask("n1", "list", "services", cluster),
  ask("n1", "create", "leases", lease),
  ask("n1", "update", "leases/n1", lease),
  ask("n1", "update", "leases/n1", { ...lease, apiGroup: "coordination.svc.io" }),
];

const relation = "no relationship found between node 'n1' and this object";
const refused: readonly (readonly [Attributes, string])[] = [
  [ask("n1", "get", "configmaps/unused"), relation],
  [ask("n1", "get", "configmaps/used", { namespace: "other" }), relation],
  [ask("n2", "get", "secrets/sec"), "no relationship found between node 'n2' and this object"],
  [ask("n1", "list", "secrets"), "No Object name found"],
  [ask("n1", "list", "configmaps", cluster), "can only read namespaced object of this type"],
  [ask("n1", "update", "secrets/sec"), "can only read resources of this type"],
  [ask("n1", "delete", "configmaps/used"), "can only read resources of this type"],
  [ask("n1", "get", "pods/theirs"), relation],
  [ask("n1", "list", "pods"), "can only list/watch pods with spec.nodeName field selector"],
  [
    ask("n1", "list", "pods", { fieldSelector: "spec.nodeName=n2" }),
    "can only list/watch pods with spec.nodeName field selector",
  ],
  [
    ask("n1", "list", "pods", { fieldSelector: "spec.nodeName!=n1" }),
    "can only list/watch pods with spec.nodeName field selector",
  ],
  [ask("n1", "create", "pods/mine/exec"), ""],
  [ask("n1", "get", "pods/mine/log"), ""],
  [ask("n1", "watch", "pods/theirs"), relation],
  [ask("n1", "update", "pods/mine"), ""],
  [ask("n1", "deletecollection", "pods"), ""],
  [ask("n1", "get", "serviceaccounts/sa"), "not allowed to get service accounts"],
  [ask("n2", "create", "serviceaccounts/sa/token"), "no relationship found between node 'n2' and this object"],
  [ask("n1", "list", "nodes", cluster), "node 'n1' cannot read all nodes, only its own Node object"],
  [ask("n1", "get", "nodes/n2", cluster), "node 'n1' cannot read 'n2', only its own Node object"],
  [ask("n1", "delete", "nodes/n1", cluster), ""],
  [
    ask("n1", "create", "leases", { ...lease, namespace: "default" }),
    'can only access leases in the "kube-node-lease" system namespace',
  ],
  [ask("n1", "update", "leases/n2", lease), "can only access node lease with the same name as the requesting node"],
  [ask("n1", "list", "leases", lease), "can only get, create, update, patch, or delete a node lease"],
  [
    ask("n1", "get", "csinodes/n2", { ...cluster, apiGroup: "storage.k8s.io" }),
    "can only access CSINode with the same name as the requesting node",
  ],
  [ask("n1", "create", "namespaces"), ""],
  [ask("", "get", "nodes/n1"), 'unknown node for user "system:node:"'],
  [{ ...ask("n1", "get", ""), isResourceRequest: false, path: "/metrics" }, ""],
  [{ ...ask("n1", "get", "pods/mine"), user: { name: "system:node:n1", uid: "", groups: [], extra: {} } }, ""],
  [{ ...ask("n1", "get", "pods/mine"), user: { name: "n1", uid: "", groups: ["system:nodes"], extra: {} } }, ""],
];

t.test("nodeAuthorizer() allows a node what is its own", async (t) => {
  const graph = createNodeGraph();
  graph.putPod(mine);
  graph.putPod(theirs);
  const authorizer = nodeAuthorizer(graph);
  for (const attributes of allowed) {
    const label = `${attributes.verb} ${attributes.resource}/${attributes.name}/${attributes.subresource}`;
    t.strictSame(await authorizer.authorize(attributes), { decision: "allow", reason: "" }, label);
  }
});

t.test("nodeAuthorizer() refuses everything else, in Kubernetes' words", async (t) => {
  const graph = createNodeGraph();
  graph.putPod(mine);
  graph.putPod(theirs);
  const authorizer = nodeAuthorizer(graph);
  for (const [attributes, reason] of refused) {
    const label = `${attributes.verb} ${attributes.resource}/${attributes.name}/${attributes.subresource}`;
    t.strictSame(await authorizer.authorize(attributes), { decision: "no-opinion", reason }, label);
  }
});

t.test(
  "nodeAuthorizer() lets nodes read the accounts of their pods, and all nodes and pods, where told to",
  async (t) => {
    const graph = createNodeGraph();
    graph.putPod(mine);
    const decision = async (options: NodeAuthorizerOptions, attributes: Attributes) =>
      (await nodeAuthorizer(graph, options).authorize(attributes)).decision;
    const account = ask("n1", "get", "serviceaccounts/sa");
    t.equal(await decision({ accounts: true }, account), "allow");
    t.equal(await decision({ accounts: true }, ask("n2", "get", "serviceaccounts/sa")), "no-opinion");
    t.equal(await decision({ accounts: true }, ask("n1", "list", "serviceaccounts")), "no-opinion");
    t.equal(await decision({}, account), "no-opinion");
    for (const attributes of [
      ask("n1", "list", "nodes", cluster),
      ask("n1", "list", "pods"),
      ask("n1", "get", "pods/theirs"),
    ]) {
      t.equal(await decision({ selectors: false }, attributes), "allow", attributes.resource);
    }
  },
);

t.test("createNodeGraph() follows pods as they change and go", async (t) => {
  const graph = createNodeGraph();
  const refers = (name: string) => graph.refers("n1", "secrets", "ns", name);
  graph.putPod(mine);
  graph.putPod({ ...mine, metadata: { namespace: "ns", name: "twin" } });
  graph.deletePod("ns", "mine");
  t.equal(refers("sec"), true, "the twin refers to it still");
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
  t.equal(graph.refers("n1", "pods", "ns", "mirror"), true);
  graph.deletePod("ns", "never-there");
});
