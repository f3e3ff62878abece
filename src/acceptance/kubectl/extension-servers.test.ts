/** kubectl: api-resources, explain, objects and top of extension servers, with metrics-server's API service. */
import { networkInterfaces } from "node:os";
import t from "tap";
import { nodeMetricsKind, podMetricsKind } from "../../api/metrics/kinds.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { jsonResponse } from "../../http/respond.ts";
import { makeAggregationCertificates } from "../../testing/aggregation/aggregated-cluster.ts";
import { startExtensionServer } from "../../testing/aggregation/extension-server.ts";
import { fischerKind, flunderKind } from "../../testing/aggregation/sample-kinds.ts";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

/** An address that endpoints may have. */
const host = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === "IPv4" && !each.internal)?.address;

const certificates = await makeAggregationCertificates();
const { server: certificate, proxyCa } = certificates;
const common = { certificate, proxyCa: proxyCa.cert, ...(host === undefined ? {} : { host }) };
const usage = { cpu: "250m", memory: "64Mi" };
const times = { timestamp: "2026-01-01T00:00:00Z", window: "30s" };
const items: Readonly<Record<string, readonly object[]>> = {
  nodes: [{ metadata: { name: "n1" }, ...times, usage }],
  pods: [{ metadata: { name: "web", namespace: "default" }, ...times, containers: [{ name: "c", usage }] }],
};
const respond = (kind: string, resource: string) => async () => {
  const apiVersion = "metrics.k8s.io/v1beta1";
  return jsonResponse(200, { kind: `${kind}List`, apiVersion, metadata: {}, items: items[resource] });
};
const metricsServer = await startExtensionServer({
  ...common,
  kinds: [nodeMetricsKind, podMetricsKind],
  notStored: {
    "list NodeMetrics": respond("NodeMetrics", "nodes"),
    "get NodeMetrics": respond("NodeMetrics", "nodes"),
    "list PodMetrics": respond("PodMetrics", "pods"),
    "get PodMetrics": respond("PodMetrics", "pods"),
  },
});
const sample = await startExtensionServer({ ...common, kinds: [flunderKind, fischerKind] });
t.teardown(async () => {
  await metricsServer[Symbol.asyncDispose]();
  await sample[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
});

const endpoints = (name: string, namespace: string, portName: string, port: number) => `---
apiVersion: v1
kind: Endpoints
metadata: {name: ${name}, namespace: ${namespace}}
subsets: [{addresses: [{ip: ${host}}], ports: [{name: ${portName}, port: ${port}}]}]
`;

const files = {
  // The objects of metrics-server's own manifest that concern the API server; its pods are the server of the test.
  "metrics-server.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {labels: {k8s-app: metrics-server}, name: metrics-server, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    k8s-app: metrics-server
    rbac.authorization.k8s.io/aggregate-to-admin: "true"
    rbac.authorization.k8s.io/aggregate-to-edit: "true"
    rbac.authorization.k8s.io/aggregate-to-view: "true"
  name: system:aggregated-metrics-reader
rules: [{apiGroups: [metrics.k8s.io], resources: [pods, nodes], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {labels: {k8s-app: metrics-server}, name: metrics-server-auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: metrics-server, namespace: kube-system}]
---
apiVersion: v1
kind: Service
metadata: {labels: {k8s-app: metrics-server}, name: metrics-server, namespace: kube-system}
spec:
  ports: [{appProtocol: https, name: https, port: 443, protocol: TCP, targetPort: https}]
  selector: {k8s-app: metrics-server}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {labels: {k8s-app: metrics-server}, name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  groupPriorityMinimum: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system}
  version: v1beta1
  versionPriority: 100
${endpoints("metrics-server", "kube-system", "https", metricsServer.port)}`,
  "sample.yaml": `apiVersion: v1
kind: Service
metadata: {name: sample, namespace: default}
spec: {ports: [{name: https, port: 443}]}
${endpoints("sample", "default", "https", sample.port)}---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.wardle.example.com}
spec:
  group: wardle.example.com
  version: v1alpha1
  groupPriorityMinimum: 2000
  versionPriority: 200
  caBundle: ${Buffer.from(certificates.serverCa.cert).toString("base64")}
  service: {name: sample, namespace: default}
`,
  "flunder.yaml": `apiVersion: wardle.example.com/v1alpha1
kind: Flunder
metadata: {generateName: mine-}
spec: {reference: one}
`,
  "node.yaml": `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "1", memory: 128Mi}, allocatable: {cpu: "1", memory: 128Mi}}
`,
  "pod.yaml": `apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: "busybox:1"}]}
`,
};

const available = (name: string): KubectlOutput => [
  `get apiservice ${name}`,
  new RegExp(`${name.replaceAll(".", "\\.")} +\\S+ +True `),
  { until: true },
];

const cases: readonly KubectlOutput[] = [
  ["get apiservice v1beta1.metrics.k8s.io", /v1beta1\.metrics\.k8s\.io +Local +True/],
  ["apply -f DIR/metrics-server.yaml", /apiservice\.apiregistration\.k8s\.io\/v1beta1\.metrics\.k8s\.io configured/],
  ["apply -f DIR/sample.yaml", /apiservice\.apiregistration\.k8s\.io\/v1alpha1\.wardle\.example\.com created/],
  available("v1beta1.metrics.k8s.io"),
  available("v1alpha1.wardle.example.com"),
  ["get apiservice v1alpha1.wardle.example.com -o jsonpath={.status.conditions[0].reason}", /^Passed$/],
  ["get --raw /apis/wardle.example.com/v1alpha1", /^\{"kind":"APIResourceList".*"name":"flunders"/],
  ["api-resources --api-group=wardle.example.com", /flunders +fl +.*true +Flunder/, { until: true }],
  ["api-resources --api-group=metrics.k8s.io", /nodes .*NodeMetrics.*pods .*PodMetrics/s, { until: true }],
  ["api-versions", /^wardle\.example\.com\/v1alpha1$/m],
  ["explain flunders", /KIND: +Flunder.*spec/s, { until: true }],
  ["explain flunders.spec.reference", /reference.*<?string>?/s],
  // The kubectls run at the same time, with one extension server.
  ["create -f DIR/flunder.yaml", /flunder\.wardle\.example\.com\/(?<FLUNDER>mine-\w+) created/],
  ["get fl", /NAME +(?:CREATED AT|AGE)\s+mine/],
  ["get flunders FLUNDER -o jsonpath={.spec.reference}", /^one$/],
  [
    'patch flunder FLUNDER --type=merge -p \'{"spec":{"reference":"two"}}\'',
    /flunder\.wardle\.example\.com\/mine-\w+ patched/,
  ],
  ["get flunders FLUNDER -o jsonpath={.spec.reference}", /^two$/],
  ["delete flunder FLUNDER", /"mine-\w+" deleted/],
  ["apply -f DIR/node.yaml -f DIR/pod.yaml", /node\/n1 created.*pod\/web created/s],
  ["top nodes", /n1 +250m +25% +64Mi +50%/],
  ["top pods", /web +250m +64Mi/],
  ["get --raw /apis/metrics.k8s.io/v1beta1/nodes", /"cpu":"250m"/],
  ["delete apiservice v1alpha1.wardle.example.com", /deleted/],
  ["get --raw /apis/wardle.example.com/v1alpha1", /NotFound|could not find/, { until: true }],
];

if (host === undefined) t.comment("Skipped: this machine has no address but its loopback");
else {
  testWithKubectls(cases, {
    files,
    serverConfig: {
      proxyClientCertificate: certificates.proxyClient,
      admission: { ...defaultConfig.admission, serviceEndpoints: true },
    },
  });
}
