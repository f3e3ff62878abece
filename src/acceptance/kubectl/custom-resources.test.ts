/** kubectl: definitions of custom resources, and their objects. */
import { readFileSync } from "node:fs";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const testdata = new URL("../../../testdata/custom-resources/", import.meta.url);
const definition = (name: string): string => readFileSync(new URL(`${name}.yaml`, testdata), "utf8");

const crontab = (spec: string, more = "") => `apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: night${more}}
spec: {${spec}}
`;

const certificate = (more: string) => `apiVersion: pki.example.com/v1
kind: Certificate
metadata: {name: web}
spec:
  secretName: web-tls
  issuerRef: {name: ca}
  ${more}
`;

const crontabs = definition("crontabs");

/** The definition allows any members, which kubectl must not reject. */
const loose = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: notes, kind: Note}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;
const looseList = `apiVersion: v1
kind: List
items:
- {apiVersion: stable.example.com/v1, kind: Note, metadata: {name: first}, text: {any: 1}}
- {apiVersion: stable.example.com/v1, kind: Note, metadata: {name: second}, lines: [a, 2]}
`;

const files = {
  "loose.yaml": loose,
  "loose-list.yaml": looseList,
  "crontabs.yaml": crontabs,
  "crontabs-named.yaml": crontabs.replace("timeZone: {", "title: {type: string}\n                timeZone: {"),
  "certificates.yaml": definition("certificates"),
  "night.yaml": crontab('cronSpec: "0 3 * * *", image: "sweep:1"'),
  "night-later.yaml": crontab('cronSpec: "0 4 * * *", image: "sweep:1"'),
  "wrong.yaml": crontab("cronSpec: never, replicas: 12"),
  "typo.yaml": crontab('cronSpec: "0 3 * * *", imgae: x', "ly"),
  "server.yaml": crontab('cronSpec: "1 1 * * *"', "-server"),
  "web.yaml": certificate("dnsNames: [a.example.com]"),
  "web-more.yaml": certificate("dnsNames: [a.example.com, b.example.com]"),
  "nameless.yaml": certificate("privateKey: {algorithm: Ed25519, size: 256}"),
  "unsolved.yaml": certificate("dnsNames: [a]\n  solvers: [{selector: {}}]"),
};

const cases: readonly KubectlOutput[] = [
  ["apply -f DIR/crontabs.yaml", /crontabs\.stable\.example\.com created/],
  ["wait --for=condition=established --timeout=10s crd/crontabs.stable.example.com", /condition met/],
  ["api-resources --api-group=stable.example.com", /crontabs +ct +stable\.example\.com\/v1 +true +CronTab/],
  ["api-versions", /stable\.example\.com\/v1\nstable\.example\.com\/v1beta1/],
  ["apply -f DIR/night.yaml", /crontab\.stable\.example\.com\/night created/],
  ["apply -f DIR/night.yaml", /night unchanged/],
  ["apply -f DIR/wrong.yaml", /spec\.cronSpec: Invalid value: "never".*\n.*spec\.replicas: Invalid value: 12/],
  ["1.27: apply -f DIR/typo.yaml", /unknown field "spec\.imgae"/],
  ["get ct", /NAME +SPEC +REPLICAS +AGE\nnight +0 3 \* \* \* +1 +\d+s/],
  ["get ct -o wide", /IMAGE +AGE\n.* sweep:1 /],
  ["get all", /crontab\.stable\.example\.com\/night/],
  ["get crontabs.v1beta1.stable.example.com", /night.*Warning: stable\.example\.com\/v1beta1 CronTab is old; use v1/s],
  ["get ct night -o jsonpath={.spec.timeZone}:{.metadata.generation}", /^Etc\/UTC:1$/],
  ["get ct --field-selector=spec.image=sweep:1 -o name", /^crontab\.stable\.example\.com\/night\n$/],
  [
    "explain ct",
    /KIND: +CronTab\nVERSION: +(?:stable.example.com\/)?v1\n\nDESCRIPTION:\n +Runs a command again and again/,
  ],
  ["1.27: explain ct.spec.cronSpec --output=plaintext-openapiv2", /Five fields, as crontab\(5\) has them/],
  ["explain ct.spec.cronSpec", /Five fields, as crontab\(5\) has them/],
  ["explain crontabs --api-version=stable.example.com/v1beta1 --recursive", /cronSpec\t<string>/],
  ["apply -f DIR/night-later.yaml", /night configured/],
  ["apply view-last-applied ct night", /0 4 \* \* \*/],
  ["diff -f DIR/night.yaml", /- {2}cronSpec: 0 4.*\n\+ {2}cronSpec: 0 3/],
  ["edit ct night", /night edited/, { editor: "s/sweep:1/sweep:2/" }],
  ["get ct night -o jsonpath={.spec.image}:{.metadata.generation}", /^sweep:2:3$/],
  ["scale --replicas=3 ct night", /night scaled/],
  ["scale --replicas=9 --current-replicas=4 ct night", /Expected replicas to be 4, was 3/],
  ["get ct night -o jsonpath={.spec.replicas}:{.metadata.generation}", /^3:4$/],
  ['1.27: patch ct night --subresource=status --type=merge -p {"status":{"replicas":3}}', /night patched/],
  ["1.27: get ct night -o jsonpath={.status.replicas}:{.metadata.generation}", /^3:4$/],
  ["1.27: get ct night --subresource=scale -o jsonpath={.kind}:{.status.replicas}", /^Scale:3$/],
  [
    'patch ct night --type=json -p [{"op":"replace","path":"/spec/replicas","value":8},{"op":"remove","path":"/spec/image"}]',
    /many replicas need an image/,
  ],
  [
    'patch ct night -p {"spec":{"replicas":2}}',
    /application\/strategic-merge-patch\+json is not supported|unknown format|strategic merge patch is not supported/,
  ],
  ["annotate ct night note=seen", /night annotate/],
  ["label ct night shift=late", /night labeled/],
  ["get ct -l shift=late -o name", /night/],
  ["apply --server-side -f DIR/server.yaml", /night-server serverside-applied/],
  ["apply --server-side --field-manager=other -f DIR/server.yaml", /serverside-applied/],
  ["get ct night-server -o jsonpath={.metadata.managedFields[*].manager}", /^(?:kubectl other|other kubectl)$/],
  ["apply -f DIR/crontabs-named.yaml", /crontabs\.stable\.example\.com configured/],
  ["get ct night -o name", /night/],
  ["1.27: explain ct.spec.title", /FIELD: title/],
  ["describe crd crontabs.stable.example.com", /Stored Versions:\n +v1\n/],
  ["get crd crontabs.stable.example.com", /NAME +CREATED AT\ncrontabs\.stable\.example\.com +20/],
  ["apply -f DIR/loose.yaml", /notes\.stable\.example\.com created/],
  ["wait --for=condition=established --timeout=10s crd/notes.stable.example.com", /condition met/],
  [
    "apply -f DIR/loose-list.yaml",
    /note\.stable\.example\.com\/first created\nnote\.stable\.example\.com\/second created/,
  ],
  ["apply -f DIR/certificates.yaml --server-side", /certificates\.pki\.example\.com serverside-applied/],
  ["wait --for=condition=established --timeout=10s crd/certificates.pki.example.com", /condition met/],
  ["apply -f DIR/nameless.yaml", /spec\.privateKey\.size: .*no size/],
  ["apply -f DIR/unsolved.yaml", /spec\.solvers\[0\]/],
  ["apply -f DIR/web.yaml", /certificate\.pki\.example\.com\/web created/],
  [
    "get certs web -o jsonpath={.spec.privateKey.algorithm}:{.spec.issuerRef.kind}:{.spec.duration}",
    /^RSA:Issuer:2160h$/,
  ],
  ["apply -f DIR/web-more.yaml", /web configured/],
  ['patch cert web --type=merge -p {"spec":{"secretName":"other"}}', /secretName cannot be changed/],
  [
    '1.27: patch cert web --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
    /patched/,
  ],
  ["1.27: get certs", /NAME +READY +SECRET +AGE\nweb +True +web-tls/],
  ["1.27: wait --for=condition=Ready --timeout=5s cert/web", /condition met/],
  ["explain certificate.spec.issuerRef", /Who signs it/],
  ["create namespace later", /created/],
  [
    "create role r --verb=get,list --resource=crontabs.stable.example.com",
    /role\.rbac\.authorization\.k8s\.io\/r created/,
  ],
  ["auth can-i get ct --as=alice", /^no/],
  ["create rolebinding r --role=r --user=alice", /created/],
  ["auth can-i get ct --as=alice", /^yes/],
  ["get ct night --as=alice -o name", /night/],
  ["delete ct night", /"night" deleted/],
  ["delete ct --all", /"night-server" deleted/],
  ["delete crd crontabs.stable.example.com", /"crontabs\.stable\.example\.com" deleted/],
  ["get ct", /doesn't have a resource type "ct"|could not find the requested resource/],
  ["delete -f DIR/certificates.yaml", /deleted/],
  ["1.27: get certs", /doesn't have a resource type "certs"|could not find the requested resource/],
];

testWithKubectls(cases, { files });
