/** kubectl: objects that no controller or agent uses. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: c, image: busybox, ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1"}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: mine}
spec: {holderIdentity: me}
`;

const typo = manifest.replace("image: busybox", "image: busybox, imagePullPolcy: Never");

const cases: readonly KubectlOutput[] = [
  ["version", /v?1\.33/],
  ["api-versions", /^(?!(.*\n)*.*svc\.io)(.*\n)*coordination\.k8s\.io\/v1\n/],
  ["api-resources", /^(?!(.*\n)*.*svc\.io)(.*\n)*pods +po +v1 +true +Pod/],
  ["explain pod.spec.containers", /terminationMessagePath/],
  [
    "apply -f DIR/all.yaml",
    /pod\/web created\nconfigmap\/settings created\nlease\.coordination\.k8s\.io\/mine created/,
  ],
  [
    "apply -f DIR/all.yaml",
    /pod\/web unchanged\nconfigmap\/settings unchanged\nlease\.coordination\.k8s\.io\/mine unchanged/,
  ],
  ["apply -f DIR/typo.yaml", /imagePullPolcy/],
  [
    "get pods -o wide",
    /NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\nweb +0\/1 +Pending/,
  ],
  ["get pod web -o yaml", /apiVersion: v1\nkind: Pod\n/],
  ["get pod web -o jsonpath={.spec.containers[0].imagePullPolicy}", /^Always$/],
  ["get pod,configmap -o name", /pod\/web\n.*configmap\/settings\n/s],
  ["get pods -l app=none", /No resources found/],
  ["get --raw /apis/coordination.svc.io/v1/namespaces/default/leases/mine", /"apiVersion":"coordination\.svc\.io\/v1"/],
  ["describe pod web", /Name: +web\nNamespace: +default\n/],
  ["label pod web tier=front", /pod\/web labeled/],
  ["annotate pod web note=x", /pod\/web annotate/],
  ["get pods --show-labels", /app=web,tier=front/],
  ['patch configmap settings --type=merge -p {"data":{"b":"2"}}', /configmap\/settings patched/],
  ['patch configmap settings --type=json -p [{"op":"remove","path":"/data/a"}]', /configmap\/settings patched/],
  ["get configmap settings -o jsonpath={.data}", /^\{"b":"2"\}$|^map\[b:2\]$/],
  ["get events", /No resources found/],
  ["get namespaces", /default +Active/],
  ["create namespace x", /namespace\/x created/],
  ["delete namespace x --wait=false", /namespace "x" deleted/],
  ["get pods none", /pods "none" not found/],
  ["get --raw /readyz?verbose", /readyz check passed/],
  ["delete -f DIR/all.yaml", /pod "web" deleted.*configmap "settings" deleted/s],
  ["get pods -A", /No resources found/],
];

testWithKubectls(cases, { files: { "all.yaml": manifest, "typo.yaml": typo } });
