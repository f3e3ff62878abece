/** kubectl: get with every output format, selectors and chunks; describe, explain, api-resources. */
import { builtinScheme } from "../../api/builtin.ts";
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const pods = [1, 2, 3]
  .map(
    (number) => `apiVersion: v1
kind: Pod
metadata: {name: web-${number}, labels: {app: web, number: "${number}"}, annotations: {rank: "${4 - number}"}}
spec:
  nodeName: ${number === 3 ? "other" : "here"}
  containers: [{name: c, image: "web:${number}"}, {name: side, image: "side:1"}]
`,
  )
  .join("---\n");

const formats: readonly KubectlOutput[] = [
  ["get pods", /^NAME +READY +STATUS +RESTARTS +AGE\nweb-1 +0\/2 +Pending +0 +\S+\nweb-2 .*\nweb-3 .*\n$/],
  ["get pods -o wide", /AGE +IP +NODE +NOMINATED NODE +READINESS GATES\nweb-1 +.* <none> +here +<none> +<none>\n/],
  ["get pods -A", /^NAMESPACE +NAME +READY .*\ndefault +web-1 /],
  ["get pods --no-headers", /^web-1 .*\nweb-2 .*\nweb-3 .*\n$/],
  ["get pods --show-labels", /LABELS\nweb-1 .* app=web,number=1\n/],
  ["get pods -L number,none", /NUMBER +NONE\nweb-1 .* 1 +\n/],
  ["get pods --show-kind", /\npod\/web-1 /],
  ["get pods -o name", /^pod\/web-1\npod\/web-2\npod\/web-3\n$/],
  [
    "get pods -o yaml",
    /^apiVersion: v1\nitems:\n- apiVersion: v1\n {2}kind: Pod\n(.*\n)*kind: List\nmetadata:\n {2}resourceVersion: ""/,
  ],
  ["get pods -o json", /^\{\n {4}"apiVersion": "v1",\n {4}"items": \[\n(.*\n)* {4}"kind": "List"/],
  ["get pod web-1 -o jsonpath={.spec.containers[*].image}", /^web:1 side:1$/],
  ['get pods -o jsonpath={.items[?(@.spec.nodeName=="other")].metadata.name}', /^web-3$/],
  ["get pods -o 'jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}'", /^web-1\nweb-2\nweb-3\n$/],
  ["get pods -o 'go-template={{range .items}}{{.metadata.name}} {{end}}'", /^web-1 web-2 web-3 $/],
  ["get pods -o go-template-file=DIR/names.tmpl", /^web-1,web-2,web-3,$/],
  [
    "get pods -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image",
    /^NAME +IMAGES\nweb-1 +web:1,side:1\n/,
  ],
  ["get pods -o custom-columns-file=DIR/columns.txt", /^NODE +LABEL\nhere +1\n/],
  ["get pods --sort-by={.metadata.annotations.rank} -o name", /^pod\/web-3\npod\/web-2\npod\/web-1\n$/],
  ["get pods --sort-by=.metadata.name", /web-1 .*\nweb-2 .*\nweb-3/],
  ["get pods --field-selector=spec.nodeName=here -o name", /^pod\/web-1\npod\/web-2\n$/],
  [
    "get pods --field-selector=status.phase!=Pending,metadata.namespace=default",
    /No resources found in default namespace/,
  ],
  ["get pods --field-selector=spec.colour=red", /field label not supported: spec\.colour/, { code: 1 }],
  ["get pods -l 'number in (1,3)' -o name", /^pod\/web-1\npod\/web-3\n$/],
  ["get pods -l 'number notin (1),app' -o name", /^pod\/web-2\npod\/web-3\n$/],
  ["get pods -l '!app' -o name", /^$/],
  ["get pods -l 'a b'", /[Uu]nable to (find|parse)|unable to parse requirement|BadRequest/, { code: 1 }],
  ["get pods --chunk-size=1 -o name", /^pod\/web-1\npod\/web-2\npod\/web-3\n$/],
  ["get pods --chunk-size=2", /web-1 .*\nweb-2 .*\nweb-3/],
  ["get --raw /api/v1/namespaces/default/pods?limit=1", /"remainingItemCount":2/],
  ["get --raw /api/v1/namespaces/default/pods/web-1", /"name":"web-1"/],
  ["1.24: get pod web-1 --subresource=status -o jsonpath={.status.phase}", /^Pending$/],
  [
    "1.24: get pod web-1 --subresource=colour",
    /invalid subresource value: "colour"|could not find the requested resource/,
    { code: 1 },
  ],
  ["get pods web-1 web-3 -o name", /^pod\/web-1\npod\/web-3\n$/],
  ["get pod/web-1 cm/none", /web-1.*configmaps "none" not found/s, { code: 1 }],
  ["get po,svc,cm", /pod\/web-1 .*service\/kubernetes /s],
  ["get all", /pod\/web-1 .*service\/kubernetes /s],
  ["get -f DIR/pods.yaml -o name", /^pod\/web-1\npod\/web-2\npod\/web-3\n$/],
  ["get pods absent", /Error from server \(NotFound\): pods "absent" not found/, { code: 1 }],
  ["get pods absent --ignore-not-found", /^$/, { code: 0 }],
  ["get unicorns", /error: the server doesn't have a resource type "unicorns"/, { code: 1 }],
  ["get pods.v1. -o name", /^pod\/web-1\n/],
  ["get deployments.v9.apps", /the server doesn't have a resource type "deployments"/, { code: 1 }],
  ["get pods -n absent", /No resources found in absent namespace/],
  ["get pod web-1 -o jsonpath={.none}", /^$/],
  ["get pods --server-print=false", /NAME +AGE\nweb-1 /],
  ["get pods -w --request-timeout=1s --field-selector=metadata.name=web-1", /web-1 /],
  ["describe pods", /Name: +web-1\n(.*\n)*Name: +web-3/],
  [
    "describe pod web-1",
    /Node: +here\/\n(.*\n)*Labels: +app=web\n +number=1\n(.*\n)*Containers:\n {2}c:\n(.*\n)* {2}side:\n/,
  ],
  ["describe pod -l number=2", /Name: +web-2/],
  ["describe -f DIR/pods.yaml", /Name: +web-1(.*\n)*Name: +web-3/],
  ["describe pod web-", /Name: +web-1(.*\n)*Name: +web-3/],
];

const discovery: readonly KubectlOutput[] = [
  ["api-versions", /^(.*\n)*apps\/v1\n(.*\n)*coordination\.k8s\.io\/v1\n(.*\n)*v1\n$/],
  ["api-resources", /^NAME +SHORTNAMES +API(VERSION|GROUP) +NAMESPACED +KIND\n(.*\n)*pods +po +(v1)? +true +Pod\n/],
  [
    "api-resources --no-headers --api-group=batch",
    /^cronjobs +cj +batch(\/v1)? +true +CronJob\njobs +batch(\/v1)? +true +Job\n$/,
  ],
  ["api-resources --api-group= -o name", /^bindings\ncomponentstatuses\nconfigmaps\n(.*\n)*services\n$/],
  ["api-resources --namespaced=false -o name", /^(?!(.*\n)*pods\n)(.*\n)*namespaces\nnodes\n/],
  ["api-resources --namespaced=true -o name", /^(?!(.*\n)*nodes\n)(.*\n)*pods\n/],
  ["api-resources --verbs=create,deletecollection -o name", /^(?!(.*\n)*bindings\n)(.*\n)*pods\n/],
  [
    "api-resources -o wide",
    /pods +po +(v1)? +true +Pod +\[?(create|delete|deletecollection|get|list|patch|update|watch|[ ,])+\]? *(all)?\n/,
  ],
  ["api-resources --sort-by=kind --no-headers", /APIService(.*\n)*.*VolumeAttachment\n$/],
  ["1.22: api-resources --categories=all -o name", /^(?!(.*\n)*configmaps\n)(.*\n)*pods\n/],
  ["explain pods", /KIND: +Pod\nVERSION: +v1\n(.*\n)*.*spec\s+<(Pod)?(Object|Spec)>/],
  ["explain pod.spec.containers.livenessProbe.httpGet", /scheme\s+<string>/],
  ["explain pod.spec.containers.resources.limits", /limits <map\[string\](string|Quantity)>|limits\s+<map/],
  ["explain deployments --api-version=apps/v1", /KIND: +Deployment/],
  ["explain pod.spec.absent", /field "absent" does not exist/, { code: 1 }],
  ["1.27: explain pods --output=plaintext-openapiv2", /KIND: +Pod\nVERSION: +v1/],
  ["explain unicorns", /doesn't have a resource type "unicorns"|couldn't find resource/, { code: 1 }],
  ["version", /Server Version: (version\.Info\{)?.*1\.?.*33/],
  ["version -o json", /"serverVersion": \{(.*\n)* +"gitVersion": "v1\.33/],
  ["cluster-info", /(Kubernetes control plane|Kubernetes master).* is running at .*https:\/\/127\.0\.0\.1/],
  ["cluster-info dump --output-directory=DIR/dump", /Cluster info dumped to \S+\/dump/],
  ["cluster-info dump -o json --namespaces=default", /"kind": "NodeList"(.*\n)*.*"kind": "PodList"/],
  ["config view --minify -o jsonpath={.clusters[0].name}", /^c$/],
  ["config current-context", /./],
  ["config get-contexts -o name", /./],
  ["plugin list", /\/kubectl-hello\n/],
  ["hello", /^hello of our own\n$/],
  ["completion bash", /__start_kubectl/],
  ["options", /--as/],
  ["1.23: __complete get po", /pods/],
  ["1.23: __complete get pods w", /web-1\n?/],
  ["get --raw /openapi/v3", /"api\/v1":\{"serverRelativeURL"/],
  ["get --raw /absent", /could not find the requested resource/, { code: 1 }],
  ["get componentstatuses", /controller-manager|scheduler|etcd/],
  ["top nodes", /^error: metrics not available yet\n$/, { code: 1 }],
];

const kinds = builtinScheme()
  .kinds()
  .filter(({ verbs }) => verbs.includes("list"));
const everyKind: readonly KubectlOutput[] = kinds.flatMap(({ plural, version, group }): KubectlOutput[] => {
  const name = `${plural}.${version}.${kubernetesGroup(group)}`;
  return [[`get ${name} -A`, /NAME|No resources found/, { code: 0 }]];
});
// kubectl explains nodes and pods of metrics.k8s.io as those of the core group.
const explained = kinds
  .filter(({ group }) => kubernetesGroup(group) !== "metrics.k8s.io")
  .map(
    ({ plural, version, group }): KubectlOutput => [
      `explain ${plural} --recursive --api-version=${formatApiVersion(kubernetesGroup(group), version)}`,
      /KIND: +\w+\n(.*\n)*.*metadata\s+<Object(Meta)?>.*\n(.*\n)*.*managedFields/,
      { code: 0 },
    ],
  );

testWithKubectls([["create -f DIR/pods.yaml", /created/], ...formats, ...discovery, ...everyKind, ...explained], {
  files: {
    "pods.yaml": pods,
    "names.tmpl": "{{range .items}}{{.metadata.name}},{{end}}",
    "columns.txt": "NODE LABEL\n.spec.nodeName .metadata.labels.number\n",
    "kubectl-hello": "#!/bin/sh\necho hello of our own\n",
  },
});
