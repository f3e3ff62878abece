/** Real kubectls and objects that nothing but the server looks at. */
import { type Said, tryKubectls } from "./kubectl-harness.ts";

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

const network = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.1.0.1]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: only-web}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.9.0.0/16]}}], ports: [{port: 80, endPort: 90}]}]
`;

const typo = manifest.replace("image: busybox", "image: busybox, imagePullPolcy: Never");

const cases: readonly Said[] = [
  ["version", /v?1\.33/],
  ["api-versions", /coordination\.k8s\.io\/v1\ncoordination\.svc\.io\/v1\n/],
  ["api-resources", /pods +po +v1 +true +Pod/],
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
  ["get leases.coordination.svc.io mine -o jsonpath={.apiVersion}", /^coordination\.svc\.io\/v1$/],
  ["describe pod web", /Name: +web\nNamespace: +default\n/],
  ["label pod web tier=front", /pod\/web labeled/],
  ["annotate pod web note=x", /pod\/web annotated/],
  ["get pods --show-labels", /app=web,tier=front/],
  ['patch configmap settings --type=merge -p {"data":{"b":"2"}}', /configmap\/settings patched/],
  ['patch configmap settings --type=json -p [{"op":"remove","path":"/data/a"}]', /configmap\/settings patched/],
  ["get configmap settings -o jsonpath={.data}", /^\{"b":"2"\}$|^map\[b:2\]$/],
  ["get events", /No resources found/],
  ["get namespaces", /default +Active/],
  ["create namespace x", /namespace\/x created/],
  ["delete namespace x --wait=false", /namespace "x" deleted/],
  ["expose pod web --name=front --port=80 --type=NodePort", /service\/front exposed/],
  ["get service front", /front +NodePort +10\.0\.0\.\d+ +<none> +80:3\d{4}\/TCP/],
  ["create service clusterip back --tcp=5678:8080", /service\/back created/],
  ["create service clusterip inside --clusterip=None", /service\/inside created/],
  ["create service externalname far --external-name=db.example.com", /service\/far created/],
  ["create service loadbalancer balanced --tcp=80:80", /service\/balanced created/],
  ["create service clusterip taken --tcp=1:1 --clusterip=10.0.0.1", /10\.0\.0\.1: provided IP is already allocated/],
  [
    "get services -o wide",
    /back +ClusterIP +10\S+ +<none> +5678\/TCP +\S+ +app=back\nbalanced +LoadBalancer +10\S+ +<pending> .*far +ExternalName +<none> +db\.example\.com +<none> .*inside +ClusterIP +None +<none> +<none> .*kubernetes +ClusterIP +10\.0\.0\.1 +<none> +443\/TCP/s,
  ],
  ["set selector service back app=web", /service\/back selector updated/],
  ["delete service front back inside far balanced", /service "front" deleted/],
  ["get ipaddresses", /10\.0\.0\.1 +services\/default\/kubernetes\n$/],
  ["get servicecidrs", /kubernetes +10\.0\.0\.0\/24/],
  ["create ingress shop --class=nginx --rule=shop.example.com/cart*=cart:8080,tls=secret", /shop created/],
  ["get ingress -o wide", /shop +nginx +shop\.example\.com +80, 443/],
  ["describe ingress shop", /\/cart +cart:8080/],
  ["apply -f DIR/network.yaml", /endpointslice\S* created.*networkpolicy\S* created/s],
  ["get endpointslices,networkpolicies", /web-1 +IPv4 +80 +10\.1\.0\.1 .*only-web +app=web/s],
  ["delete -f DIR/network.yaml", /deleted/],
  ["get pods none", /pods "none" not found/],
  ["get --raw /readyz?verbose", /readyz check passed/],
  ["delete -f DIR/all.yaml", /pod "web" deleted.*configmap "settings" deleted/s],
  ["get pods -A", /No resources found/],
];

tryKubectls(cases, { "all.yaml": manifest, "typo.yaml": typo, "network.yaml": network });
