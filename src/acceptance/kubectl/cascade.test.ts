/** kubectl: cascading deletion of dependents. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const family = `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: owner}
spec:
  replicas: 0
  selector: {matchLabels: {app: owner}}
  template:
    metadata: {labels: {app: owner}}
    spec: {containers: [{name: c, image: "c:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: child}
`;

const owned = (uid: string): string =>
  JSON.stringify({
    metadata: {
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "owner", uid, blockOwnerDeletion: true }],
    },
  });

const created: readonly KubectlOutput[] = [
  ["apply -f DIR/family.yaml", /replicaset\.apps\/owner created/],
  ["get replicaset owner -o jsonpath={.metadata.uid}", /^(?<OWNER>\S+)$/],
  [`patch configmap child --type=merge -p ${owned("OWNER")}`, /configmap\/child patched/],
];

testWithKubectls(
  [
    ...created,
    ["delete replicaset owner", /replicaset\.apps "owner" deleted/],
    ["1.27: wait --for=delete configmap/child --timeout=20s", /condition met|not found|^$/],
    ["get configmap child", /configmaps "child" not found/],
    ...created,
    ["delete replicaset owner --cascade=foreground", /replicaset\.apps "owner" deleted/],
    ["get configmap child", /configmaps "child" not found/],
    ...created,
    ["delete replicaset owner --cascade=orphan", /replicaset\.apps "owner" deleted/],
    ["get configmap child -o jsonpath=<{.metadata.ownerReferences}>", /^<>$/],
    // An orphan has no owner.
    ...created,
    ["delete replicaset owner --cascade=background --wait=false", /replicaset\.apps "owner" deleted/],
    ["1.27: wait --for=delete configmap/child --timeout=20s", /condition met|not found|^$/],
    ["get serviceaccount default -o name", /^serviceaccount\/default$/m],
    ["get configmap kube-root-ca.crt -o jsonpath={.data}", /BEGIN/],
  ],
  {
    files: { "family.yaml": family },
    serverConfig: { embeddedControllers: ["*"], clusterCa: "-----BEGIN CERTIFICATE-----" },
  },
);
