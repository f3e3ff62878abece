/** kubectl: `create`, `run` and `expose` with arguments instead of manifests. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const map = (name: string): string => `apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}}
data: {from: file}
`;

const list = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed-1}}
- {apiVersion: v1, kind: Secret, metadata: {name: listed-2}, stringData: {a: b}}
`;

const configuration: readonly KubectlOutput[] = [
  ["create configmap literal --from-literal=a=1 --from-literal=b=2", /^configmap\/literal created$/m],
  ["get configmap literal -o jsonpath={.data.a}{.data.b}", /^12$/],
  ["create configmap file --from-file=DIR/plain.txt --from-file=other=DIR/plain.txt", /configmap\/file created/],
  [
    "get configmap file -o 'go-template={{range $k, $v := .data}}{{$k}}={{$v}};{{end}}'",
    /^other=hello\n;plain.txt=hello\n;$/,
  ],
  ["create configmap whole --from-file=DIR/plain.txt --append-hash", /configmap\/whole-\w{10} created/],
  ["create configmap binary --from-file=DIR/bytes", /configmap\/binary created/],
  ["get configmap binary -o jsonpath={.binaryData.bytes}", /^\/\/4=$/],
  ["create configmap env --from-env-file=DIR/some.env", /configmap\/env created/],
  ["get configmap env -o jsonpath={.data.COLOUR}/{.data.SIZE}", /^blue\/7$/],
  ["create configmap literal", /configmaps "literal" already exists/, { code: 1 }],
  ["create configmap Not_A_Name", /metadata\.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain/],
  ["create configmap odd --from-literal=a/b=1", /"a\/b" is not a valid key name for a ConfigMap|a\/b/, { code: 1 }],
  ["create secret generic plain --from-literal=user=jo --type=example.com/own", /secret\/plain created/],
  ["get secret plain", /plain +example\.com\/own +1 /],
  ["get secret plain -o jsonpath={.data.user}", /^am8=$/],
  [
    "create secret docker-registry pull --docker-server=r.example.com --docker-username=u --docker-password=p",
    /pull c/,
  ],
  ["get secret pull -o jsonpath={.type}", /^kubernetes\.io\/dockerconfigjson$/],
  [
    "create secret generic basic --type=kubernetes.io/basic-auth --from-literal=x=y",
    /data\[username\]: Required value.*data\[password\]: Required value/s,
  ],
  ["create secret generic bad --type=kubernetes.io/tls --from-literal=x=y", /data\[tls\.crt\]: Required value/],
];

const access: readonly KubectlOutput[] = [
  ["create namespace shop", /^namespace\/shop created$/m],
  ["create namespace shop", /namespaces "shop" already exists/, { code: 1 }],
  ["create namespace Shop", /a lowercase RFC 1123 label must consist of/, { code: 1 }],
  ["create serviceaccount robot -n shop", /serviceaccount\/robot created/],
  ["1.24: create token robot -n shop", /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/],
  ["create role reader --verb=get,list --resource=pods,deployments.apps --resource-name=web", /reader created/],
  ["create role stranger --verb=get --resource=unicorns", /the server doesn't have a resource type "unicorns"/],
  [
    "get role reader -o jsonpath={.rules[*].apiGroups}{.rules[*].resourceNames}",
    /\[""\] \["apps"\]\["web"\] \["web"\]/,
  ],
  ["create role sub --verb=get --resource=pods/log,deployments/scale", /sub created/],
  ["create clusterrole wide --verb=* --resource=nodes --dry-run=server -o name", /clusterrole\S+\/wide$/m],
  [
    "create clusterrole wide --verb=get,watch --resource=nodes",
    /clusterrole\.rbac\.authorization\.k8s\.io\/wide created/,
  ],
  ["create clusterrole paths --verb=get --non-resource-url=/logs/*", /paths created/],
  ["create clusterrole all --aggregation-rule=example.com/aggregate=yes", /all created/],
  [
    "create clusterrolebinding wide --clusterrole=wide --user=jo --group=ops --serviceaccount=shop:robot",
    /wide created/,
  ],
  ["get clusterrolebinding wide -o wide", /wide +ClusterRole\/wide +\S+ +jo +ops +shop\/robot/],
  ["create rolebinding reader --role=reader --serviceaccount=shop:robot", /rolebinding\S+\/reader created/],
  ["create rolebinding view --clusterrole=view --user=jo -n shop", /view created/],
  [
    "get rolebindings -A -o wide",
    /default +reader +Role\/reader +\S+ +shop\/robot *\n.*shop +view +ClusterRole\/view +\S+ +jo/s,
  ],
  [
    "create quota small --hard=pods=2,services=3 --scopes=NotTerminating",
    /not match|unsupported scope|Invalid value|Forbidden/,
  ],
  ["create quota small --hard=pods=2,requests.cpu=1 --scopes=NotTerminating", /resourcequota\/small created/],
  ["create priorityclass high --value=1000 --description=first --preemption-policy=Never", /\/high created/],
  ["get priorityclass high", /high +1000 +false +/],
  ["create priorityclass higher --value=2000000000", /maximum allowed value/, { code: 1 }],
];

const workloads: readonly KubectlOutput[] = [
  ["create deployment web --image=web:1 --replicas=2 --port=80 -- serve now", /deployment\.apps\/web created/],
  ["get deployment web -o jsonpath={.spec.template.spec.containers[0].command}", /^\["serve","now"\]$/],
  ["create deployment two --image=a:1 --image=b:1", /two created/],
  ["create job once --image=web:1 -- date", /job\.batch\/once created/],
  [
    "1.21: create cronjob nightly --image=web:1 '--schedule=0 1 * * *' --restart=Never",
    /cronjob\.batch\/nightly created/,
  ],
  ["1.21: create job by-hand --from=cronjob/nightly", /job\.batch\/by-hand created/],
  ["1.21: get job by-hand -o jsonpath={.metadata.ownerReferences[0].kind}:{.metadata.annotations}", /CronJob:.*manual/],
  ["1.21: create cronjob bad --image=web:1 --schedule=often", /spec\.schedule: Invalid value: "often"/, { code: 1 }],
  ["1.21: create poddisruptionbudget calm --selector=app=web --max-unavailable=20%", /calm created/],
  ["1.21: get pdb calm", /calm +N\/A +20% +0 /],
  ["create service clusterip plain --tcp=80:8080 --tcp=443", /service\/plain created/],
  ["create service nodeport np --tcp=80:8080 --node-port=30080", /service\/np created/],
  ["create service nodeport np2 --tcp=80:8080 --node-port=30080", /provided port is already allocated/, { code: 1 }],
  ["create service nodeport np3 --tcp=80:8080 --node-port=80", /not in the valid range|provided port is not in/],
  ["create service loadbalancer lb --tcp=80:80", /service\/lb created/],
  ["create service externalname far --external-name=example.com", /service\/far created/],
  ["create service externalname worse --external-name=-", /invalid service external name|externalName: Invalid/],
  ["get service plain -o jsonpath={.spec.ports[*].name}:{.spec.ports[*].targetPort}", /^80-8080 443:8080 443$/],
  ["1.20: create ingress shop '--rule=a.example.com/cart*=cart:80,tls=pair' --default-backend=web:80", /shop created/],
  ["1.20: create ingress bad --rule=a.example.com/cart=cart:80 --class=x/y/z", /spec\.ingressClassName: Invalid value/],
  ["run one --image=web:1 --port=80 --labels=app=one --env=A=b --restart=Never -- sleep 5", /pod\/one created/],
  ["run one --image=web:1", /pods "one" already exists/, { code: 1 }],
  ["run shown --image=web:1 --expose --port=80", /service\/shown created.*pod\/shown created/s],
  ["run dry --image=web:1 --dry-run=server", /pod\/dry created \(server dry run\)/],
  ["run dry --image=web:1 --dry-run=client -o yaml", /kind: Pod\n(.*\n)* {2}name: dry/],
  ['run over --image=web:1 --overrides={"spec":{"terminationGracePeriodSeconds":7}}', /pod\/over created/],
  ["get pod over -o jsonpath={.spec.terminationGracePeriodSeconds}", /^7$/],
  ["run bad --image=", /--image is required|spec\.containers\[0\]\.image: Required value/, { code: 1 }],
  ["expose pod one --port=80 --target-port=8080 --name=one --type=NodePort --session-affinity=ClientIP", /one exposed/],
  ["expose service plain --port=81 --name=again", /service\/again exposed/],
  ["expose deployment web --port=80 --cluster-ip=None --name=inside", /service\/inside exposed/],
  ["expose node none --port=80", /cannot expose|nodes "none" not found/, { code: 1 }],
];

const files: readonly KubectlOutput[] = [
  ["create -f DIR/many", /configmap\/m1 created\nconfigmap\/m2 created|configmap\/m1/],
  ["create -f DIR/list.yaml", /configmap\/listed-1 created\nsecret\/listed-2 created/],
  ["create -f - -o name", /^configmap\/from-stdin$/m, { input: map("from-stdin") }],
  ["create -f URL/remote.yaml", /configmap\/remote created/],
  ["create -f URL/absent.yaml", /unable to read URL .*404 Not Found/, { code: 1 }],
  ["create -f - --edit", /configmap\/edited created/, { input: map("unedited"), editor: "s/unedited/edited/" }],
  ["create -f - --save-config", /configmap\/saved created/, { input: map("saved") }],
  ["apply view-last-applied configmap saved", /from: file/],
  ["create --raw /api/v1/namespaces/default/configmaps -f DIR/raw.json", /"name": ?"raw"/],
  ["replace --raw /api/v1/namespaces/default/configmaps/raw -f DIR/raw.json", /"name": ?"raw"/],
  ["delete --raw /api/v1/namespaces/default/configmaps/raw", /"status": ?"Success"/],
  ["create -f - ", /error parsing|cannot unmarshal|couldn't get|yaml: /, { input: "{{{", code: 1 }],
  [
    "create -f -",
    /no matches for kind "Unicorn" in version "v1"/,
    { input: "apiVersion: v1\nkind: Unicorn\nmetadata: {name: u}\n", code: 1 },
  ],
  ["convert -f DIR/raw.json", /unknown command "convert" for "kubectl"|DEPRECATED|not found/, { code: 1 }],
  ["delete -f DIR/list.yaml", /configmap "listed-1" deleted.*\nsecret "listed-2" deleted/],
];

const remote = createServer((request, response) => {
  response.statusCode = request.url === "/remote.yaml" ? 200 : 404;
  response.end(map("remote"));
}).listen(0, "127.0.0.1");
await new Promise((resolve) => remote.once("listening", resolve));
t.teardown(() => remote.close());

testWithKubectls([...configuration, ...access, ...workloads, ...files], {
  files: {
    "plain.txt": "hello\n",
    bytes: Uint8Array.of(0xff, 0xfe),
    "some.env": "# of ours\nCOLOUR=blue\nSIZE=7\n",
    "list.yaml": list,
    "raw.json": JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "raw" } }),
    "many/m1.yaml": map("m1"),
    "many/m2.yaml": map("m2"),
  },
  names: { URL: `http://127.0.0.1:${(remote.address() as AddressInfo).port}` },
});
