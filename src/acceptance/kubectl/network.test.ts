/** kubectl: services, endpoints, ingresses, network policies, certificates. */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { Pkcs10CertificateRequestGenerator } from "@peculiar/x509";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const pod = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: c, image: busybox, ports: [{containerPort: 80}]}]
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

const request = async () => `apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: jo}
spec:
  signerName: example.com/signer
  expirationSeconds: 3600
  usages: [client auth]
  request: ${await certificateRequest()}
`;

/** A request in PEM, base64-encoded as in the API. */
async function certificateRequest(): Promise<string> {
  const keys = await webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const signingAlgorithm = { name: "ECDSA", hash: "SHA-256" };
  const made = await Pkcs10CertificateRequestGenerator.create({ name: "CN=jo", keys, signingAlgorithm });
  return Buffer.from(made.toString("pem")).toString("base64");
}

const cases: readonly KubectlOutput[] = [
  ["apply -f DIR/pod.yaml", /pod\/web created/],
  ["expose pod web --name=front --port=80 --type=NodePort", /service\/front exposed/],
  ["get service front", /front +NodePort +10\.0\.0\.\d+ +<none> +80:3\d{4}\/TCP/],
  ["create service clusterip back --tcp=5678:8080", /service\/back created/],
  ["create service clusterip inside --clusterip=None", /service\/inside created/],
  ["create service externalname far --external-name=db.example.com", /service\/far created/],
  ["create service loadbalancer balanced --tcp=80:80", /service\/balanced created/],
  ["create service clusterip taken --tcp=1:1 --clusterip=10.0.0.1", /10\.0\.0\.1: provided IP is already allocated/],
  [
    "get services -o wide",
    /back +ClusterIP +10\S+ +<none> +5678\/TCP +\S+ +app=back\nbalanced +LoadBalancer +10\S+ +<pen/,
  ],
  ["get services", /far +ExternalName +<none> +db\.example\.com +<none> .*inside +ClusterIP +None +<none> +<none> /s],
  ["get service kubernetes", /kubernetes +ClusterIP +10\.0\.0\.1 +<none> +443\/TCP/],
  ["set selector service back app=web", /service\/back selector updated/],
  ["delete service front back inside far balanced", /service "front" deleted/],
  ["get ipaddresses", /10\.0\.0\.1 +services\/default\/kubernetes\n/],
  ["get servicecidrs", /kubernetes +10\.0\.0\.0\/24/],
  ["create ingress shop --class=nginx --rule=shop.example.com/cart*=cart:8080,tls=secret", /shop created/],
  ["get ingress -o wide", /shop +nginx +shop\.example\.com +80, 443/],
  ["describe ingress shop", /\/cart +cart:8080/],
  ["apply -f DIR/csr.yaml", /certificatesigningrequest\S* created/],
  ["get csr", /jo +\S+ +example\.com\/signer +admin +60m +Pending/],
  ["certificate approve jo", /certificatesigningrequest\S*\/jo approved/],
  ["get csr jo -o jsonpath={.status.conditions[0].type}", /^Approved/],
  ["certificate deny jo", /"jo" is already Approved/],
  ["apply -f DIR/network.yaml", /endpointslice\S* created.*networkpolicy\S* created/s],
  ["get endpointslices,networkpolicies", /web-1 +IPv4 +80 +10\.1\.0\.1 .*only-web +app=web/s],
  ["delete -f DIR/network.yaml", /deleted/],
  ["get apiservices", /v1\. +Local +True .*v1\.apps +Local +True .*v1\.networking\.k8s\.io +Local +True/s],
];

testWithKubectls(cases, { files: { "pod.yaml": pod, "network.yaml": network, "csr.yaml": await request() } });
