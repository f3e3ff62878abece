/** kubectl: patch, edit, label, annotate, prune, wait, watch and delete. */
import type { Test } from "tap";
import { type KubectlOutput, type KubectlSession, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const map = (name: string, value: string, label = "prune: me"): string => `apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}, namespace: default, labels: {${label}}}
data: {a: "${value}"}
`;

const pod = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: c, image: "web:1", env: [{name: A, value: a}]}, {name: d, image: "side:1"}]
`;

const patches: readonly KubectlOutput[] = [
  ["create -f DIR/pod.yaml", /pod\/web created/],
  ['patch pod web -p {"metadata":{"labels":{"by":"strategic"}}}', /pod\/web patched/],
  ['patch pod web -p {"metadata":{"labels":{"by":"strategic"}}}', /pod\/web patched \(no change\)/],
  ['patch pod web -p {"spec":{"containers":[{"name":"d","image":"side:2"}]}}', /pod\/web patched/],
  ["get pod web -o jsonpath={.spec.containers[*].image}", /^web:1 side:2$/],
  ['patch pod web --type=merge -p {"metadata":{"labels":{"by":"merge","app":null}}}', /pod\/web patched/],
  [
    'patch pod web --type=json -p [{"op":"test","path":"/metadata/labels/by","value":"merge"}]',
    /web patched \(no change\)/,
  ],
  [
    'patch pod web --type=json -p [{"op":"test","path":"/metadata/labels/by","value":"x"}]',
    /The request is invalid/,
    { code: 1 },
  ],
  ["patch pod web --type=json --patch-file=DIR/patch.json", /pod\/web patched/],
  ["get pod web -o jsonpath={.metadata.labels}", /^\{"by":"file"\}$|^map\[by:file\]$/],
  [
    'patch pod web -p {"spec":{"containers":[{"name":"c","command":["x"]}]}}',
    /pod updates may not change fields/,
    { code: 1 },
  ],
  ['patch pod web -p {"spec":{"containers":[{"name":"c","image":""}]}}', /image: Required value/, { code: 1 }],
  ['patch pod absent -p {"metadata":{"labels":{"a":"b"}}}', /pods "absent" not found/, { code: 1 }],
  ['patch pod web --dry-run=server -p {"metadata":{"labels":{"by":"dry"}}} -o jsonpath={.metadata.labels.by}', /^dry/],
  ['patch -f DIR/pod.yaml --local -p {"metadata":{"labels":{"by":"local"}}} -o yaml', /by: local/],
  ["get pod web -o jsonpath={.metadata.labels.by}", /^file$/],
  ['1.24: patch pod web --subresource=status --type=merge -p {"status":{"message":"patched"}}', /pod\/web patched/],
  ["1.24: get pod web -o jsonpath={.status.message}", /^patched$/],
  ["label pod web tier=front", /pod\/web labeled/],
  ["label pod web tier=back", /already has a value \(front\), and --overwrite is false/, { code: 1 }],
  ["label pod web tier=back --overwrite", /pod\/web labeled/],
  ["label pod web tier=back --overwrite --resource-version=1", /the object has been modified/, { code: 1 }],
  ["label pods --all all=yes", /pod\/web labeled/],
  ["label pods -l all=yes some=yes", /pod\/web labeled/],
  ["label pod web --list", /tier=back/],
  ["label pod web tier- none-", /label "none" not found|pod\/web (un)?labeled/],
  ["label pod web 'x=not a value'", /a valid label must be|[Ii]nvalid/, { code: 1 }],
  ["1.21: label -f DIR/pod.yaml from=file --dry-run=server", /pod\/web labeled \(server dry run\)/],
  ["annotate pod web note='read me'", /pod\/web annotated?/],
  [
    "annotate pod web note=again",
    /--overwrite is false but found the following declared annotation|already has a value/,
  ],
  ["annotate pod web note=again --overwrite", /pod\/web annotated?/],
  ["1.21: annotate pod web --list", /note=again/],
  ["annotate pod web note-", /pod\/web (un)?annotated?/],
  ["edit pod web", /pod\/web edited/, { editor: "s/by:.file/by:\\ edit/" }],
  ["get pod web -o jsonpath={.metadata.labels.by}", /^edit$/],
  ["edit pod web", /Edit cancelled, no changes made/, { editor: "s/absent/present/" }],
  ["edit pod web -o json", /"by": "json"/, { editor: "s/edit/json/" }],
  ["edit pod web", /pods "web" is invalid/, { editor: "s/value:.a$/value:\\ b/" }],
  ["1.24: edit pod web --subresource=status", /pod\/web edited/, { editor: "s/patched/edited/" }],
  ["1.24: get pod web -o jsonpath={.status.message}", /^edited$/],
];

const applied: readonly KubectlOutput[] = [
  ["apply -f -", /configmap\/one created/, { input: map("one", "1") }],
  ["apply -f -", /configmap\/one unchanged/, { input: map("one", "1") }],
  ["diff -f -", /- {2}a: "1"\n\+ {2}a: "2"/, { input: map("one", "2"), code: 1 }],
  ["diff -f -", /^$/, { input: map("one", "1"), code: 0 }],
  ["diff --server-side -f -", /\+ {2}a: "3"/, { input: map("fresh", "3"), code: 1 }],
  ["get configmap fresh", /not found/],
  ["apply --dry-run=server -f -", /configmap\/one configured \(server dry run\)/, { input: map("one", "2") }],
  ["apply --dry-run=client -f -", /configmap\/one configured \(dry run\)/, { input: map("one", "2") }],
  ["apply -f -", /configmap\/one configured/, { input: map("one", "2") }],
  ["apply -f - -o jsonpath={.data.a}", /^3$/, { input: map("one", "3") }],
  ["apply -f -", /configmap\/two created/, { input: map("two", "2") }],
  [
    "apply --prune -l prune=me -f - --prune-allowlist=core/v1/ConfigMap",
    /unknown flag|configmap\/two unchanged\nconfigmap\/one pruned/,
    { input: map("two", "2") },
  ],
  ["1.27: get configmap one", /configmaps "one" not found/, { code: 1 }],
  ["create configmap kept", /created/],
  [
    "apply -f -",
    /resource configmaps\/kept is missing the .*last-applied-configuration annotation/,
    { input: map("kept", "1") },
  ],
  ["create -f -", /configmap\/plain created/, { input: map("plain", "1") }],
  ["replace -f -", /configmap\/plain replaced/, { input: map("plain", "2") }],
  ["replace -f - --dry-run=server", /configmap\/plain replaced \(server dry run\)/, { input: map("plain", "3") }],
  ["replace --force -f -", /configmap "plain" deleted.*\nconfigmap\/plain replaced/, { input: map("plain", "4") }],
  ["replace -f -", /configmaps "absent" not found/, { input: map("absent", "1"), code: 1 }],
  ["kustomize DIR", /name: kustomized-base\n/],
  ["apply -k DIR", /configmap\/kustomized-base created/],
  ["diff -k DIR", /^$/, { code: 0 }],
  ["get -k DIR -o name", /^configmap\/kustomized-base$/m],
  ["delete -k DIR", /configmap "kustomized-base" deleted/],
];

const applySet: readonly KubectlOutput[] = [
  ["1.27: apply -n default -f - --prune --applyset=configmap/set", /configmap\/s1 created/, { input: map("s1", "1") }],
  [
    "1.27: apply -n default -f - --prune --applyset=configmap/set",
    /configmap\/s2 created\nconfigmap\/s1 pruned/,
    { input: map("s2", "1") },
  ],
  ["1.27: get configmap set -o jsonpath={.metadata.labels}", /applyset\.kubernetes\.io\/id":"applyset-/],
  ["1.27: get configmap s1", /configmaps "s1" not found/, { code: 1 }],
];

const waited: readonly KubectlOutput[] = [
  ["wait pod/web --for=condition=Ready --timeout=1s", /timed out waiting for the condition/, { code: 1 }],
  ["replace --raw /api/v1/namespaces/default/pods/web/status -f DIR/ready.json", /"Ready"/],
  ["wait pod/web --for=condition=Ready --timeout=5s", /pod\/web condition met/, { code: 0 }],
  ["wait pods --all --for=condition=ready=True --timeout=5s", /pod\/web condition met/],
  ["1.23: wait pod/web --for=jsonpath={.status.phase}=Running --timeout=5s", /pod\/web condition met/],
  ["1.31: wait pod/web --for=create --timeout=5s", /pod\/web condition met/],
  ["1.31: wait pod/none --for=create --timeout=1s", /timed out waiting for the condition/, { code: 1 }],
  ["wait pod/none --for=condition=Ready", /pods "none" not found/, { code: 1 }],
  ["wait pod/web --for=delete --timeout=1s", /timed out waiting for the condition on pods\/web/, { code: 1 }],
];

const deleted: readonly KubectlOutput[] = [
  ["delete configmap plain --dry-run=server", /configmap "plain" deleted.*\(server dry run\)/],
  ["delete configmap plain --dry-run=client", /configmap "plain" deleted.*\(dry run\)/],
  ["delete configmap plain -o name", /^configmap\/plain$/m],
  ["delete configmap plain", /configmaps "plain" not found/, { code: 1 }],
  ["delete configmap plain --ignore-not-found", /^$/, { code: 0 }],
  ["delete configmap -l prune=me", /configmap "kept" deleted|configmap "two" deleted|deleted/],
  ["delete configmap -l prune=me", /No resources found/],
  ["delete configmap --field-selector=metadata.name=none", /No resources found/],
  ["delete pod web --grace-period=0 --force", /pod "web" force deleted/],
  ["wait pod/web --for=delete --timeout=10s", /condition met|not found|no matching resources|^$/],
  ["create -f -", /created/, { input: map("held", "1").replace("labels:", "finalizers: [example.com/hold], labels:") }],
  ["delete configmap held --timeout=1s", /timed out waiting for the condition/, { code: 1 }],
  ["delete configmap held --wait=false", /configmap "held" deleted/],
  ["get configmap held -o jsonpath={.metadata.deletionTimestamp}", /^\d{4}-/],
  ['patch configmap held --type=merge -p {"metadata":{"finalizers":null}}', /patched/],
  ["get configmap held", /not found/],
  ["create namespace gone", /created/],
  ["create configmap inside -n gone", /created/],
  ["delete namespace gone", /namespace "gone" deleted/],
  ["get configmap inside -n gone", /namespaces "gone" not found/],
  ["delete namespace default", /namespaces "default" is forbidden: this namespace may not be deleted/, { code: 1 }],
  ["delete --raw /api/v1/namespaces/default/configmaps/none", /configmaps "none" not found/],
];

const ready = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "default" },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
};

async function testWatches(t: Test, session: KubectlSession): Promise<void> {
  using all = session.follow("get configmaps --watch --output-watch-events");
  using only = session.follow("get configmaps --watch-only -o name");
  using selected = session.follow("get configmaps --watch --output-watch-events -l tier=front");
  // Wait until each watch is served.
  for (const [at, watch] of [all, only, selected].entries()) {
    for (let again = 0; watch.text === "" && again < 20; again++) {
      await session.run(`create configmap begun-${at}-${again}`);
      await session.run(`label configmap begun-${at}-${again} tier=front`);
    }
  }
  await session.run("create configmap first");
  await session.run("label configmap first tier=front");
  await session.run("label configmap first tier-");
  await session.run("delete configmap first");
  t.match(await all.waitForOutput(/DELETED +first/), /ADDED +first .*\n(MODIFIED +first .*\n){2}DELETED +first /);
  t.match(await only.waitForOutput(/(configmap\/first\n){4}/), /(configmap\/first\n){4}$/);
  t.match(
    await selected.waitForOutput(/DELETED +first/),
    /^EVENT.*\n(.*begun.*\n)+ADDED +first .*\nDELETED +first .*\n$/,
  );
  using proxy = session.follow("proxy --port=0 --api-prefix=/");
  const port = /Starting to serve on 127\.0\.0\.1:(\d+)/.exec(await proxy.waitForOutput(/Starting to serve/))?.[1];
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/namespaces/default`);
  t.match([response.status, await response.json()], [200, { kind: "Namespace", metadata: { name: "default" } }]);
}

testWithKubectls([...patches, ...applied, ...applySet, ...waited, ...deleted], {
  files: {
    "pod.yaml": pod,
    "patch.json": JSON.stringify([{ op: "replace", path: "/metadata/labels/by", value: "file" }]),
    "ready.json": JSON.stringify(ready),
    "kustomization.yaml": "namePrefix: kustomized-\nresources: [base.yaml]\n",
    "base.yaml": map("base", "1", "layer: base"),
  },
  serverConfig: { embeddedControllers: ["namespace", "garbage-collector"] },
  afterCases: testWatches,
});
