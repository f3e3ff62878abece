/** kubectl: rollout, set, drain, taint, RBAC. The test itself creates ReplicaSets, pods and nodes. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const node = (name: string): string => `apiVersion: v1
kind: Node
metadata: {name: ${name}, labels: {kubernetes.io/hostname: ${name}}}
`;

const pod = (name: string, more: string): string => `apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: {app: ${name}}${more}}
spec: {nodeName: here, terminationGracePeriodSeconds: 0, containers: [{name: c, image: "web:1"}]}
`;

const controlled = (kind: string, name: string): string =>
  `, ownerReferences: [{apiVersion: apps/v1, kind: ${kind}, name: ${name}, uid: UID, controller: true}]`;

const set = (revision: number): string => `apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-${revision}
  labels: {app: web, pod-template-hash: "${revision}"}
  annotations: {deployment.kubernetes.io/revision: "${revision}", kubernetes.io/change-cause: "cause ${revision}"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: UID, controller: true}]
spec:
  replicas: ${revision - 1}
  selector: {matchLabels: {app: web, pod-template-hash: "${revision}"}}
  template:
    metadata: {labels: {app: web, pod-template-hash: "${revision}"}}
    spec: {containers: [{name: web, image: "web:${revision}"}]}
`;

const revision = (number: number): string => `apiVersion: apps/v1
kind: ControllerRevision
metadata:
  name: db-${number}
  labels: {app: db}
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: UID, controller: true}]
revision: ${number}
data:
  spec:
    template: {$patch: replace, metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: "db:${number}"}]}}
`;

const db = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "db:2"}]}
`;

const rollouts: readonly KubectlOutput[] = [
  ["create deployment web --image=web:2", /created/],
  ["get deployment web -o jsonpath={.metadata.uid}", /^(?<UID>\S+)$/],
  ["create -f - ", /web-1 created.*web-2 created/s, { input: `${set(1)}---\n${set(2)}` }],
  ["rollout history deployment/web", /REVISION +CHANGE-CAUSE\n1 +cause 1\n2 +cause 2\n/],
  ["rollout history deployment/web --revision=1", /revision #1.*Image:\s+web:1\n/s],
  ["rollout undo deployment/web --to-revision=1 --dry-run=client", /Image:\s+web:1|rolled back|web \(dry run\)/s],
  ["rollout undo deployment/web", /deployment\.apps\/web rolled back/],
  ["get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", /^web:1$/],
  ["rollout undo deployment/web --to-revision=9", /unable to find specified revision 9 in history/, { code: 1 }],
  ["rollout pause deployment/web", /deployment\.apps\/web paused/],
  ["rollout pause deployment/web", /deployments\.apps "web" is already paused/],
  ["rollout undo deployment/web", /cannot rollback|paused/, { code: 1 }],
  ["rollout resume deployment/web", /deployment\.apps\/web resumed/],
  ["rollout resume deployment/web", /deployments\.apps "web" is not paused/],
  ["rollout restart deployment/web", /deployment\.apps\/web restarted/],
  ["get deployment web -o jsonpath={.spec.template.metadata.annotations}", /kubectl\.kubernetes\.io\/restartedAt/],
  ["get deployment web -o jsonpath={.metadata.generation}", /^(?<GENERATION>\d+)$/],
  ["rollout status deployment/web --watch=false", /Waiting for deployment spec update to be observed/],
  [
    "replace --raw /apis/apps/v1/namespaces/default/deployments/web/status -f - ",
    /"observedGeneration"/,
    {
      input: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"status":
      {"observedGeneration":GENERATION,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}}`,
    },
  ],
  ["rollout status deployment/web", /deployment "web" successfully rolled out/, { code: 0 }],
  ["get deployment web", /web +1\/1 +1 +1 /],
  ["describe deployment web", /Replicas: +1 desired \| 1 updated \| 1 total \| 1 available \| 0 unavailable/],
  ["create -f - ", /db created/, { input: db }],
  ["get statefulset db -o jsonpath={.metadata.uid}", /^(?<UID>\S+)$/],
  ["create -f - ", /db-1 created.*db-2 created/s, { input: `${revision(1)}---\n${revision(2)}` }],
  ["rollout history statefulset/db", /REVISION.*\n1.*\n2/],
  ["rollout history statefulset/db --revision=1", /Image:\s+db:1/],
  ["rollout undo statefulset/db --to-revision=1", /statefulset\.apps\/db rolled back/],
  ["get statefulset db -o jsonpath={.spec.template.spec.containers[0].image}", /^db:1$/],
  ["rollout restart statefulset/db", /statefulset\.apps\/db restarted/],
];

const settings: readonly KubectlOutput[] = [
  ["set image deployment/web web=web:3", /deployment\.apps\/web image updated/],
  ["set image deployment/web none=web:3", /unable to find container named "none"/, { code: 1 }],
  ["set image deployment web *=web:4 --local -o name --dry-run=client", /./],
  ["set env deployment/web A=1 B=2", /deployment\.apps\/web env updated/],
  ["set env deployment/web A-", /env updated/],
  ["set env deployment/web --list", /# deployments\/web, container web\nB=2|# .*\nB=2/i],
  ["create configmap from --from-literal=COLOUR=red", /created/],
  ["set env deployment/web --from=configmap/from --prefix=X_", /env updated/],
  ["get deployment web -o jsonpath={.spec.template.spec.containers[0].env[*].name}", /^B X_COLOUR$/],
  ["set resources deployment/web --requests=cpu=1 --limits=cpu=2,memory=1Gi", /resource requirements updated/],
  ["set resources deployment/web --requests=cpu=3", /must be less than or equal to cpu limit/, { code: 1 }],
  ["set serviceaccount deployment/web robot", /serviceaccount updated/],
  ["create service clusterip web --tcp=80", /created/],
  ["set selector service web tier=front", /service\/web selector updated/],
  ["create rolebinding view --clusterrole=view --user=jo", /created/],
  ["set subject rolebinding view --user=ann --group=ops", /subjects updated/],
  ["get rolebinding view -o jsonpath={.subjects[*].name}", /^jo ann ops$|jo.*ann.*ops|ops/],
  ["scale deployment/web --replicas=3", /deployment\.apps\/web scaled/],
  ["scale deployment/web --current-replicas=9 --replicas=1", /Expected replicas to be 9, was 3/, { code: 1 }],
  ["scale deployment/web --replicas=4 --resource-version=1", /resource version to be 1/, { code: 1 }],
  ["autoscale deployment web --min=2 --max=4 --cpu-percent=70", /horizontalpodautoscaler\.autoscaling\/web autoscaled/],
  ["autoscale deployment web --max=4", /horizontalpodautoscalers\.autoscaling "web" already exists/, { code: 1 }],
  ["describe hpa web", /Min replicas: +2/],
];

const nodes: readonly KubectlOutput[] = [
  ["create -f -", /node\/here created.*node\/there created/s, { input: `${node("here")}---\n${node("there")}` }],
  ["get nodes", /NAME +STATUS +ROLES +AGE +VERSION\nhere +Unknown +<none> /],
  ["label node there node-role.kubernetes.io/edge=", /node\/there labeled/],
  ["get nodes there", /there +Unknown +edge /],
  ["taint node here a=b:NoSchedule", /node\/here tainted/],
  ["taint node here a=c:NoSchedule", /already has a taint.* and --overwrite is false|already has/, { code: 1 }],
  ["taint node here a=c:NoSchedule --overwrite", /node\/here modified/],
  ["taint node here a=c:Sometimes", /invalid taint effect: Sometimes/, { code: 1 }],
  ["taint nodes --all b=c:PreferNoSchedule", /node\/here tainted.*node\/there tainted/s],
  ["taint node here a- b-", /node\/here untainted/],
  ["taint node here a-", /taint "a" not found/, { code: 1 }],
  ["cordon here", /node\/here cordoned/],
  ["cordon here", /node\/here already cordoned/],
  ["get node here", /Unknown,SchedulingDisabled/],
  ["uncordon here", /node\/here uncordoned/],
  ["describe node here", /Unschedulable: +false(.*\n)*Non-terminated Pods: +\(0 in total\)/],
  ["create -f -", /alone created/, { input: pod("alone", "") }],
  ["create deployment held --image=web:1", /created/],
  ["get deployment held -o jsonpath={.metadata.uid}", /^(?<UID>\S+)$/],
  [
    "create -f -",
    /set created/,
    { input: set(1).replaceAll(/web-1/g, "set").replaceAll("Deployment, name: web", "Deployment, name: held") },
  ],
  ["get replicaset set -o jsonpath={.metadata.uid}", /^(?<UID>\S+)$/],
  ["create -f -", /of-set created/, { input: pod("of-set", controlled("ReplicaSet", "set")) }],
  ["describe node here", /Non-terminated Pods: +\(2 in total\)(.*\n)* +default +alone /],
  ["drain here", /node\/here cordoned(.*\n)*.*cannot delete (cannot delete )?[Pp]ods.* default\/alone/, { code: 1 }],
  ["drain here --force --dry-run=server", /evicting pod default\/of-set|pod\/of-set evicted|of-set/],
  ["1.21: create poddisruptionbudget calm --selector=app=of-set --min-available=1", /calm created/],
  [
    "1.24: patch pdb calm --subresource=status --type=merge --patch-file=DIR/calm.json",
    /poddisruptionbudget\.policy\/calm patched/,
  ],
  ["replace --raw /api/v1/namespaces/default/pods/of-set/status -f DIR/ready.json", /"Ready"/],
  [
    "1.21: drain here --force --timeout=2s",
    /Cannot evict pod as it would violate the pod's disruption budget/,
    { code: 1 },
  ],
  ["1.21: delete poddisruptionbudget calm", /deleted/],
  [
    "drain here --force",
    /(evicting pod default\/of-set|pod\/of-set evicted)(.*\n)*node\/here (drained|evicted|deleted)/,
    { code: 0 },
  ],
  ["get pods", /No resources found/],
  ["get node here", /SchedulingDisabled/],
  ["create -f -", /again created/, { input: pod("again", "") }],
  ["drain here --force --disable-eviction", /node\/here (drained|evicted|deleted)/, { code: 0 }],
  ["drain none", /nodes "none" not found/, { code: 1 }],
  ["delete node here there", /node "here" deleted/],
];

/** Disruption budgets count ready pods. */
const ready = JSON.stringify({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "of-set", namespace: "default", labels: { app: "of-set" } },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
});

const calm = JSON.stringify({
  status: { observedGeneration: 1, expectedPods: 1, desiredHealthy: 1, currentHealthy: 1, disruptionsAllowed: 0 },
});

const grants = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`;

const rights: readonly KubectlOutput[] = [
  ["auth can-i get pods", /^yes$/m, { code: 0 }],
  ["auth can-i list pods --as=eve", /^no$/m, { code: 1 }],
  ["auth can-i '*' '*'", /^yes$/m],
  ["auth can-i get /healthz --as=eve --as-group=system:authenticated", /^yes$/m],
  ["auth can-i get unicorns", /the server doesn't have a resource type 'unicorns'\n\n?yes|yes/],
  ["auth reconcile -f DIR/grants.yaml --dry-run=client", /reader reconciled/],
  ["auth reconcile -f DIR/grants.yaml", /role\S+\/reader reconciled(.*\n)*.*rolebinding\S+\/reader reconciled/],
  ["auth can-i list pods --as=eve", /^yes$/m, { code: 0, until: true }],
  [
    "auth can-i --list --as=eve",
    /Resources +Non-Resource URLs +Resource Names +Verbs\n(.*\n)*pods +\[\] +\[\] +\[get list\]/,
  ],
  ["get pods --as=eve", /No resources found/],
  [
    "get secrets --as=eve",
    /secrets is forbidden: User "eve" cannot list resource "secrets" in API group "" in the namespace "default"/,
  ],
  [
    "create role more --verb=get --resource=secrets --as=eve",
    /roles\.rbac\.\S+ is forbidden: User "eve" cannot create/,
  ],
  ["1.28: auth whoami", /ATTRIBUTE +VALUE\nUsername +admin\n(.*\n)*Groups +\[system:masters system:authenticated\]/],
  ["1.28: auth whoami --as=eve -o jsonpath={.status.userInfo.username}", /^eve$/],
  ["config set-context --current --namespace=kube-system", /modified/],
  ["get serviceaccounts -o name", /serviceaccount\/default/, { until: true }],
  ["config set-context --current --namespace=default", /modified/],
];

const events: readonly KubectlOutput[] = [
  [
    "create -f -",
    /event\S*\/first created/,
    {
      input: `apiVersion: v1
kind: Event
metadata: {name: first, namespace: default}
involvedObject: {apiVersion: v1, kind: Pod, name: web, namespace: default}
reason: Tried
message: it was tried
type: Warning
count: 3
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
`,
    },
  ],
  ["get events", /LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n(.*\n)*.* +Warning +Tried +pod\/web +it was tried/],
  ["get events -o wide", /Tried +pod\/web +it was tried +\S+ +3 +first/],
  ["get events --field-selector=involvedObject.name=web,type=Warning -o name", /^event\/first$/m],
  ["1.26: events --for=pod/web", /Warning +Tried +Pod\/web +it was tried/],
  ["1.26: events --types=Normal --for=pod/web", /No events found in default namespace/],
  ["1.26: events -A -o yaml", / {4}name: first\n/],
  ["describe events first", /Reason: +Tried/],
];

testWithKubectls([...rollouts, ...settings, ...nodes, ...rights, ...events], {
  files: { "grants.yaml": grants, "calm.json": calm, "ready.json": ready },
  serverConfig: { embeddedControllers: ["serviceaccount", "clusterrole-aggregation"] },
});
