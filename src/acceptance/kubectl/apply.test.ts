/** kubectl: server-side apply and managed fields. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const settings = (value: string) => `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "${value}"}
`;

const deployment = (more: string) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  ${more}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "busybox:1", ports: [{containerPort: 80}]}]}
`;

const lease = (group: string, holder: string) => `apiVersion: coordination.${group}/v1
kind: Lease
metadata: {name: mine}
spec: {holderIdentity: ${holder}}
`;

const files = {
  "one.yaml": settings("1"),
  "two.yaml": settings("2"),
  "web.yaml": deployment("replicas: 1"),
  "web-scaled.yaml": deployment("replicas: 3"),
  "web-free.yaml": deployment("revisionHistoryLimit: 3"),
  "typo.yaml": settings("1").replace("\ndata:", "\ndat:"),
  "ours.yaml": lease("svc.io", "me"),
  "theirs.yaml": lease("k8s.io", "you"),
};

const cases: readonly KubectlOutput[] = [
  ["apply --server-side -f DIR/one.yaml", /configmap\/settings serverside-applied/],
  ["apply --server-side -f DIR/one.yaml --dry-run=server", /serverside-applied \(server dry run\)/],
  ["get configmap settings -o jsonpath={.metadata.managedFields[*].manager}", /^kubectl$/],
  ["apply --server-side --field-manager=other -f DIR/one.yaml", /serverside-applied/],
  [
    "apply --server-side --field-manager=other -f DIR/two.yaml",
    /conflict with "kubectl": \.data\.a.*--force-conflicts/s,
  ],
  ["apply --server-side --field-manager=other --force-conflicts -f DIR/two.yaml", /serverside-applied/],
  ["get configmap settings -o jsonpath={.data.a}", /^2$/],
  ["1.27: get configmap settings -o yaml", /^(?!.*managedFields)/s],
  ["1.27: get configmap settings -o yaml --show-managed-fields", /managedFields:\n.*f:a: \{\}\n.*manager: other\n/s],
  ["1.27: apply --server-side -f DIR/typo.yaml", /\.dat: field not declared in schema/],
  ["delete configmap settings", /deleted/],
  // Migration from client-side to server-side apply.
  ["apply -f DIR/web.yaml", /deployment\.apps\/web created/],
  ["apply view-last-applied deployment web", /replicas: 1/],
  ["get deployment web -o jsonpath={.metadata.managedFields[*].manager}", /^kubectl-client-side-apply$/],
  ["apply --server-side -f DIR/web-scaled.yaml", /deployment\.apps\/web serverside-applied/],
  [
    "1.27: get deployment web -o jsonpath={.spec.replicas}:{.metadata.managedFields[*].manager}:{.metadata.managedFields[*].operation}",
    // The annotation has its own field manager from then on.
    /^3:(?:kubectl kubectl-last-applied|kubectl-last-applied kubectl):Apply Apply$/,
  ],
  ["apply view-last-applied deployment web", /replicas: 3/],
  ["apply -f DIR/web-scaled.yaml", /deployment\.apps\/web (configured|unchanged)/],
  ["apply set-last-applied -f DIR/web.yaml", /deployment\.apps\/web configured/],
  ["apply edit-last-applied deployment web", /deployment\.apps\/web edited/, { editor: "s/busybox:1/busybox:2/" }],
  ["apply view-last-applied deployment web", /busybox:2/],
  ["scale deployment web --replicas=5", /deployment\.apps\/web scaled/],
  [
    "apply --server-side -f DIR/web-scaled.yaml",
    /conflict with "kubectl[.\d]*" with subresource "scale" using apps\/v1: \.spec\.replicas/,
  ],
  ["1.27: apply --server-side -f DIR/web-free.yaml", /serverside-applied/],
  ["1.27: get deployment web -o jsonpath={.spec.replicas}:{.spec.revisionHistoryLimit}", /^5:3$/],
  // One object through a group and its alias.
  ["apply --server-side -f DIR/ours.yaml", /lease\.coordination\.svc\.io\/mine serverside-applied/],
  ["apply --server-side --field-manager=other -f DIR/theirs.yaml", /conflict with "kubectl": \.spec\.holderIdentity/],
  ["apply --server-side -f DIR/theirs.yaml", /lease\.coordination\.k8s\.io\/mine serverside-applied/],
  ["get lease mine -o jsonpath={.metadata.managedFields[*].apiVersion}", /^coordination\.k8s\.io\/v1$/],
];

testWithKubectls(cases, { files, serverConfig: { groupAliases: { served: true, listed: true } } });
