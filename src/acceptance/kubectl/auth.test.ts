/** kubectl: authorization, RBAC, tokens, certificates, quotas and limits. The expected texts are Kubernetes' own. */
import { createCertificateRequest } from "../../auth/pki/certificate-signing.ts";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

/** Matches the whole output by lines. A blank matches any number of blanks, `…` the rest of a word. */
function outputOf(...lines: readonly string[]): RegExp {
  return new RegExp(`^${patternOf(lines)}$`);
}

/** Matches some lines of the output. */
function outputWith(...lines: readonly string[]): RegExp {
  return new RegExp(`^${patternOf(lines)}`, "m");
}

function patternOf(lines: readonly string[]): string {
  const escaped = lines.map((line) => line.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return escaped.map((line) => `${line.replaceAll(/ +/g, " +").replaceAll("…", String.raw`\S*`)} *\n`).join("");
}

const GROUP = "rbac.authorization.k8s.io";
const user = (name: string): string => `{apiGroup: ${GROUP}, kind: User, name: ${name}}`;

const grants = (verbs: string, ...users: readonly string[]): string => `apiVersion: ${GROUP}/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [pods], verbs: [${verbs}]}]
---
apiVersion: ${GROUP}/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: ${GROUP}, kind: Role, name: reader}
subjects: [${users.map(user).join(", ")}]
`;

const yes = [outputOf("yes"), { code: 0 }] as const;
const no = [outputOf("no"), { code: 1 }] as const;

/** Permissions of all users. Non-resource URLs of two roles are listed twice. */
const OWN_REVIEWS = [
  "selfsubjectreviews.authentication.k8s.io [] [] [create]",
  "selfsubjectaccessreviews.authorization.k8s.io [] [] [create]",
  "selfsubjectrulesreviews.authorization.k8s.io [] [] [create]",
];
const URLS = [
  ...["/api/*", "/api", "/apis/*", "/apis", "/healthz", "/healthz", "/livez", "/livez", "/openapi/*", "/openapi"],
  ...["/readyz", "/readyz", "/version/", "/version/", "/version", "/version"],
].map((page) => ` [${page}] [] [get]`);
const LIST_HEAD = "Resources Non-Resource URLs Resource Names Verbs";

const requests: readonly KubectlOutput[] = [
  ["auth can-i get pods", ...yes],
  ["auth can-i list pods --as=eve", ...no],
  ["auth can-i '*' '*' --all-namespaces", ...yes],
  ["auth can-i get pods -A --as=eve", ...no],
  ["auth can-i get pods/web --as=eve", ...no],
  ["auth can-i get pods --subresource=log", ...yes],
  ["auth can-i get pods --subresource=log --as=eve", ...no],
  [
    "1.27: auth can-i list nodes",
    outputOf("yes", "Warning: resource 'nodes' is not namespace scoped", ""),
    { code: 0 },
  ],
  ["1.27: auth can-i fly pods", outputOf("yes", "Warning: verb 'fly' is not a known verb", ""), { code: 0 }],
  [
    "1.27: auth can-i get unicorns",
    outputOf("yes", "Warning: the server doesn't have a resource type 'unicorns'", ""),
    { code: 0 },
  ],
  ["auth can-i get /healthz --as=eve", ...yes],
  ["auth can-i get /logs/x --as=eve", ...no],
  ["auth can-i create pods --quiet", /^$/, { code: 0 }],
  ["auth can-i create pods -q --as=eve", /^$/, { code: 1 }],
  [
    "1.27: auth can-i",
    outputWith("error: you must specify two arguments: verb resource or verb resource/resourceName."),
    { code: 1 },
  ],
  ["auth can-i --list --as=eve", outputOf(LIST_HEAD, ...OWN_REVIEWS, ...URLS), { code: 0 }],
  ["auth can-i --list --no-headers --as=eve", outputOf(...OWN_REVIEWS, ...URLS), { code: 0 }],
  [
    "1.27: auth can-i --list --as=system:node:n1 --as-group=system:nodes",
    outputWith("Warning: the list may be incomplete: node authorizer does not support user rule resolution"),
    { code: 0 },
  ],
];

const ACCOUNT = "system:serviceaccount:default:robot";
const ACCOUNT_GROUPS = "[system:serviceaccounts system:serviceaccounts:default system:authenticated]";

const identity: readonly KubectlOutput[] = [
  [
    "1.28: auth whoami",
    outputOf("ATTRIBUTE VALUE", "Username admin", "UID 1", "Groups [system:masters system:authenticated]"),
    { code: 0 },
  ],
  [
    "1.28: auth whoami -o json",
    outputWith(
      ...[' "username": "admin",', ' "uid": "1",', ' "groups": ['],
      ...[' "system:masters",', ' "system:authenticated"', " ]"],
    ),
    { code: 0 },
  ],
  [
    "1.28: auth whoami -o yaml --as=eve --as-group=shop --as-group=ops --as-uid=7",
    outputOf(
      ...["apiVersion: authentication.k8s.io/v1", "kind: SelfSubjectReview", "metadata:", " creationTimestamp: …"],
      ...["status:", " userInfo:", " groups:", " - shop", " - ops", " - system:authenticated"],
      ...[' uid: "7"', " username: eve"],
    ),
    { code: 0 },
  ],
  [
    `1.28: auth whoami --as=${ACCOUNT}`,
    outputOf("ATTRIBUTE VALUE", `Username ${ACCOUNT}`, `Groups ${ACCOUNT_GROUPS}`),
    { code: 0 },
  ],
  ["get pods --as-group=shop", /without impersonating a user/, { code: 1 }],
  [
    "get pods --as=eve",
    outputOf(
      'Error from server (Forbidden): pods is forbidden: User "eve" cannot list resource "pods" in API group "" in ' +
        'the namespace "default"',
    ),
    { code: 1 },
  ],
  ["get pods --as=eve --as-group=system:masters", outputOf("No resources found in default namespace."), { code: 0 }],
];

const reconciled = (note = "") => [
  `role.${GROUP}/reader reconciled${note}`,
  `rolebinding.${GROUP}/reader reconciled${note}`,
];
const rule = (verbs: string) =>
  `\t\t{Verbs:[${verbs}] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}`;
const subject = (name: string) => `\t\t{Kind:User APIGroup:${GROUP} Name:${name} Namespace:}`;
const created = [
  ...["\treconciliation required create", "\tmissing rules added:", rule("get list")],
  ...["\treconciliation required create", "\tmissing subjects added:", subject("eve"), subject("bob")],
];
const removed = [
  ...["\treconciliation required update", "\textra rules removed:", rule("list")],
  ...["\treconciliation required update", "\textra subjects removed:", subject("bob")],
];
const added = ["\treconciliation required update", "\tmissing subjects added:", subject("till")];
const READER = "get role,rolebinding reader -o jsonpath={.items[*].rules[*].verbs}{.items[*].subjects[*].name}";

const reconciliation: readonly KubectlOutput[] = [
  [
    "auth reconcile -f DIR/grants.yaml --dry-run=client",
    outputOf(...reconciled(" (dry run)"), ...created),
    { code: 0 },
  ],
  ["get role reader", outputOf(`Error from server (NotFound): roles.${GROUP} "reader" not found`), { code: 1 }],
  ["auth reconcile -f DIR/grants.yaml", outputOf(...reconciled(), ...created), { code: 0 }],
  [
    "auth can-i --list --as=eve",
    outputOf(LIST_HEAD, ...OWN_REVIEWS, "pods [] [] [get list]", ...URLS),
    { code: 0, until: true },
  ],
  ["auth can-i list pods --as=eve", ...yes],
  ["auth reconcile -f DIR/grants.yaml", outputOf(...reconciled()), { code: 0 }],
  ["auth reconcile -f DIR/less.yaml", outputOf(...reconciled()), { code: 0 }],
  [READER, /^\["get","list"\]eve bob$/],
  [
    "auth reconcile -f DIR/less.yaml --remove-extra-permissions --remove-extra-subjects",
    outputOf(...reconciled(), ...removed),
    { code: 0 },
  ],
  [READER, /^\["get"\]eve$/],
  ["auth reconcile -f DIR/other.yaml", outputOf(...reconciled(), ...added), { code: 0 }],
  [READER, /^\["get"\]eve till$/],
  ["auth can-i list pods --as=eve", outputOf("no"), { code: 1, until: true }],
  [
    "auth reconcile -f DIR/less.yaml -o name",
    outputOf(`role.${GROUP}/reader`, `rolebinding.${GROUP}/reader`),
    { code: 0 },
  ],
  [
    "auth reconcile -f DIR/grants.yaml --as=eve",
    /User "eve" cannot get resource "roles" in API group "rbac\.authorization\.k8s\.io" in the namespace "default"/,
    { code: 1 },
  ],
];

const TO_WEB = "--bound-object-kind=Pod --bound-object-name=web";
const LOGGED_OUT = /^error: You must be logged in to the server \(/;
const EXTRA = "Extra: authentication.kubernetes.io";

const tokens: readonly KubectlOutput[] = [
  ["create serviceaccount robot", outputOf("serviceaccount/robot created")],
  [`run web --image=web:1 --overrides={"spec":{"serviceAccountName":"robot"}}`, outputWith("pod/web created")],
  ["get pod web -o jsonpath={.metadata.uid}", /^(?<UID_OF_WEB>\S+)$/],
  ["1.27: create token robot", /^(?<PLAIN>eyJ[\w-]+\.[\w-]+\.[\w-]+)$/, { code: 0 }],
  [
    "1.27: get configmaps --token=PLAIN",
    new RegExp(`User "${ACCOUNT}" cannot list resource "configmaps"`),
    { code: 1 },
  ],
  [
    "1.28: auth whoami --token=PLAIN",
    outputOf(
      ...["ATTRIBUTE VALUE", `Username ${ACCOUNT}`, "UID …", `Groups ${ACCOUNT_GROUPS}`],
      `${EXTRA}/credential-id [JTI=…]`,
    ),
  ],
  [
    "1.27: create token robot --duration=1m",
    outputOf(
      'error: failed to create token: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: ' +
        "Invalid value: 60: may not specify a duration less than 10 minutes",
    ),
    { code: 1 },
  ],
  ["1.27: create token robot --duration=20m -o jsonpath={.spec.expirationSeconds}", /^1200$/],
  ["1.27: create token robot --audience=a --audience=b -o jsonpath={.spec.audiences}", /^\["a","b"\]$/],
  ["1.27: create token robot --audience=elsewhere", /^(?<OTHERS>eyJ\S+)$/, { code: 0 }],
  ["get pods --token=OTHERS", LOGGED_OUT, { code: 1 }],
  [`1.27: create token robot ${TO_WEB}`, /^(?<BOUND>eyJ\S+)$/, { code: 0 }],
  ["1.28: auth whoami --token=BOUND", outputWith(`${EXTRA}/pod-name [web]`, `${EXTRA}/pod-uid […]`), { code: 0 }],
  [`1.27: create token robot ${TO_WEB} --bound-object-uid=UID_OF_WEB -o jsonpath={.spec.boundObjectRef.kind}`, /^Pod$/],
  [
    `1.27: create token robot ${TO_WEB} --bound-object-uid=other`,
    outputOf(
      'error: failed to create token: Operation cannot be fulfilled on Pod "web": the UID in the bound object ' +
        "reference (other) does not match the UID in record. The object might have been deleted and then recreated",
    ),
    { code: 1 },
  ],
  [
    "1.27: create token robot --bound-object-kind=Pod --bound-object-name=none",
    outputOf('error: failed to create token: pods "none" not found'),
    { code: 1 },
  ],
  ["1.27: create token none", outputOf('error: failed to create token: serviceaccounts "none" not found'), { code: 1 }],
  [
    "1.27: create token robot --as=eve",
    outputOf(
      'error: failed to create token: serviceaccounts "robot" is forbidden: User "eve" cannot create resource ' +
        '"serviceaccounts/token" in API group "" in the namespace "default"',
    ),
    { code: 1 },
  ],
  ["delete pod web --now", /^pod "web" (force )?deleted/],
  ["get pods --token=BOUND", LOGGED_OUT, { code: 1, until: true }],
  ["get pods --token=nonsense", LOGGED_OUT, { code: 1 }],
];

const CSR_HEAD = "NAME AGE SIGNERNAME REQUESTOR REQUESTEDDURATION CONDITION";
const CSR = "certificatesigningrequest.certificates.k8s.io";
const row = (name: string, condition: string) => `${name} …s example.com/signer admin 60m ${condition}`;

const certificates: readonly KubectlOutput[] = [
  ["apply -f DIR/csrs.yaml", outputOf(`${CSR}/jo created`, `${CSR}/never created`)],
  // Some releases warn that the group and its alias have the same short name.
  ["get csr", outputWith(CSR_HEAD, row("jo", "Pending"), row("never", "Pending"))],
  ["certificate approve jo --as=eve", /User "eve" cannot get resource "certificatesigningrequests"/, { code: 1 }],
  ["certificate approve jo", outputOf(`${CSR}/jo approved`), { code: 0 }],
  ["certificate deny never", outputOf(`${CSR}/never denied`), { code: 0 }],
  ["get csr", outputWith(CSR_HEAD, row("jo", "Approved"), row("never", "Denied"))],
  ["certificate deny jo", outputOf('error: certificate signing request "jo" is already Approved'), { code: 1 }],
  ["certificate approve never", outputOf('error: certificate signing request "never" is already Denied'), { code: 1 }],
  [
    "certificate approve none",
    outputOf('Error from server (NotFound): certificatesigningrequests.certificates.k8s.io "none" not found'),
    { code: 1 },
  ],
  [
    "1.27: describe csr jo",
    outputWith(
      ...["Requesting User: admin", "Signer: example.com/signer", "Requested Duration: 60m", "Status: Approved"],
      ...["Subject:", " Common Name: jo"],
    ),
  ],
  [
    "get csr jo -o jsonpath={.status.conditions[0].reason}:{.status.conditions[0].message}",
    /^KubectlApprove:This CSR was approved by kubectl certificate approve\./,
  ],
];

const descriptionOf = (name: string, ...lines: readonly string[]) =>
  outputOf(`Name: ${name}`, "Labels: <none>", "Annotations: <none>", ...lines);
const RULES = [
  ...["PolicyRule:", " Resources Non-Resource URLs Resource Names Verbs"],
  " --------- ----------------- -------------- -----",
];
const SUBJECTS = [
  ...["Subjects:", " Kind Name Namespace", " ---- ---- ---------"],
  ...[" User eve", " Group shop", " ServiceAccount robot default"],
];
const TO_THREE = "--user=eve --group=shop --serviceaccount=default:robot";
const THREE_HEAD = "NAME ROLE AGE USERS GROUPS SERVICEACCOUNTS";

const roles: readonly KubectlOutput[] = [
  [
    "create clusterrole gathered --aggregation-rule=shop.example.com/to-gathered=true",
    outputOf(`clusterrole.${GROUP}/gathered created`),
  ],
  ["create clusterrole part --verb=get,list --resource=pods,deployments.apps/scale", /part created\n$/],
  ["label clusterrole part shop.example.com/to-gathered=true", /part labeled\n$/],
  [
    "describe clusterrole gathered",
    descriptionOf("gathered", ...RULES, " pods [] [] [get list]", " deployments.apps/scale [] [] [get list]"),
    { until: true },
  ],
  [
    "create clusterrole bad --aggregation-rule=a=b --verb=get",
    outputOf("error: aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames"),
    { code: 1 },
  ],
  ["create clusterrole pages --verb=get --non-resource-url=/logs/*", outputOf(`clusterrole.${GROUP}/pages created`)],
  ["describe clusterrole pages", descriptionOf("pages", ...RULES, " [/logs/*] [] [get]")],
  [
    "create role watcher --verb=get --verb=watch --resource=pods,deployments.apps --resource-name=web",
    outputOf(`role.${GROUP}/watcher created`),
  ],
  [
    "describe role watcher",
    descriptionOf("watcher", ...RULES, " pods [] [web] [get watch]", " deployments.apps [] [web] [get watch]"),
  ],
  ["create role bad --verb=get --resource=unicorns", /the server doesn't have a resource type "unicorns"/, { code: 1 }],
  ["get roles watcher", outputOf("NAME CREATED AT", "watcher …")],
  [`create rolebinding three --role=watcher ${TO_THREE}`, outputOf(`rolebinding.${GROUP}/three created`)],
  ["describe rolebinding three", descriptionOf("three", "Role:", " Kind: Role", " Name: watcher", ...SUBJECTS)],
  ["get rolebinding three", outputOf("NAME ROLE AGE", "three Role/watcher …s")],
  ["get rolebinding three -o wide", outputOf(THREE_HEAD, "three Role/watcher …s eve shop default/robot")],
  [
    `create clusterrolebinding wide --clusterrole=view ${TO_THREE}`,
    outputOf(`clusterrolebinding.${GROUP}/wide created`),
  ],
  [
    "describe clusterrolebinding wide",
    descriptionOf("wide", "Role:", " Kind: ClusterRole", " Name: view", ...SUBJECTS),
  ],
  ["get clusterrolebinding wide -o wide", outputOf(THREE_HEAD, "wide ClusterRole/view …s eve shop default/robot")],
  [`auth can-i list deployments.apps -A --as=${ACCOUNT}`, outputOf("yes"), { code: 0, until: true }],
  ["auth can-i list deployments.apps -A --as=jo --as-group=shop", ...yes],
  ["auth can-i list deployments.apps -A --as=jo", ...no],
  [
    "create rolebinding bad --user=eve",
    outputOf("error: exactly one of clusterrole or role must be specified"),
    { code: 1 },
  ],
];

const ESCALATION =
  'is forbidden: user "mallory" (groups=["system:authenticated"]) is attempting to grant RBAC permissions ';

const escalation: readonly KubectlOutput[] = [
  [`create clusterrole granter --verb=create --resource=roles.${GROUP},rolebindings.${GROUP}`, /granter created\n$/],
  ["create clusterrolebinding granter --clusterrole=granter --user=mallory", /granter created\n$/],
  ["auth can-i create roles -n default --as=mallory", outputOf("yes"), { code: 0, until: true }],
  [
    "create role more --verb=get --resource=secrets --as=mallory",
    outputWith(
      `Error from server (Forbidden): roles.${GROUP} "more" ${ESCALATION}not currently held:`,
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ),
    { code: 1 },
  ],
  [
    "create rolebinding more --clusterrole=cluster-admin --user=mallory --as=mallory",
    outputWith(
      `error: failed to create rolebinding: rolebindings.${GROUP} "more" ${ESCALATION}not currently held:`,
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
      '{NonResourceURLs:["*"], Verbs:["*"]}',
    ),
    { code: 1 },
  ],
];

const NOT_TERMINATING =
  " * Matches all pods that do not have an active deadline. These pods usually include long running pods whose " +
  "container command is not expected to terminate.";
const RANGES = [
  "Type Resource Min Max Default Request Default Limit Max Limit/Request Ratio",
  "---- -------- --- --- --------------- ------------- -----------------------",
  "Container memory - 1Gi 256Mi 512Mi 4",
  "PersistentVolumeClaim storage 1Gi - - - -",
];

const limits: readonly KubectlOutput[] = [
  ["create namespace small", /created/],
  [
    "create quota tight -n small --hard=pods=1,requests.cpu=1 --scopes=NotTerminating",
    outputOf("resourcequota/tight created"),
  ],
  ["create quota plain -n small --hard=configmaps=2", outputOf("resourcequota/plain created")],
  [
    "create quota bad -n small --hard=pods=1 --scopes=None",
    /ResourceQuota "bad" is invalid: spec\.scopes: .*unsupported scope/,
    { code: 1 },
  ],
  [
    "get quota -n small",
    outputOf("NAME REQUEST LIMIT AGE", "plain configmaps: 0/2 …s", "tight pods: 0/1, requests.cpu: 0/1 …s"),
    { until: true },
  ],
  ["create configmap one -n small", /created/],
  ["create configmap two -n small", /created/],
  [
    "1.27: create configmap three -n small",
    outputOf(
      'error: failed to create configmap: configmaps "three" is forbidden: exceeded quota: plain, requested: ' +
        "configmaps=1, used: configmaps=2, limited: configmaps=2",
    ),
    { code: 1 },
  ],
  [
    "run web -n small --image=web:1",
    outputWith(
      'Error from server (Forbidden): pods "web" is forbidden: failed quota: tight: must specify requests.cpu for: web',
    ),
    { code: 1 },
  ],
  [
    "describe quota plain -n small",
    outputOf("Name: plain", "Namespace: small", "Resource Used Hard", "-------- ---- ----", "configmaps 2 2"),
  ],
  [
    "describe quota tight -n small",
    outputOf(
      ...["Name: tight", "Namespace: small", "Scopes: NotTerminating", NOT_TERMINATING],
      ...["Resource Used Hard", "-------- ---- ----", "pods 0 1", "requests.cpu 0 1"],
    ),
  ],
  ["apply -n small -f DIR/limits.yaml", outputOf("limitrange/mem created")],
  ["describe limits mem -n small", outputOf("Name: mem", "Namespace: small", ...RANGES)],
  ["get limits -n small", outputOf("NAME CREATED AT", "mem …")],
  ["describe namespace small", outputWith("Resource Limits", ...RANGES.map((line) => ` ${line}`))],
];

const limitRange = `apiVersion: v1
kind: LimitRange
metadata: {name: mem}
spec:
  limits:
  - type: Container
    max: {memory: 1Gi}
    default: {memory: 512Mi}
    defaultRequest: {memory: 256Mi}
    maxLimitRequestRatio: {memory: "4"}
  - {type: PersistentVolumeClaim, min: {storage: 1Gi}}
`;

const request = Buffer.from((await createCertificateRequest({ commonName: "jo", organizations: [] })).request).toString(
  "base64",
);
const signing = (name: string): string => `apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: ${name}}
spec: {signerName: example.com/signer, expirationSeconds: 3600, usages: [client auth], request: ${request}}
`;

const cases = [requests, identity, reconciliation, tokens, certificates, roles, escalation, limits].flat();
testWithKubectls(cases, {
  files: {
    "grants.yaml": grants("get, list", "eve", "bob"),
    "less.yaml": grants("get", "eve"),
    "other.yaml": grants("get", "till"),
    "csrs.yaml": `${signing("jo")}---\n${signing("never")}`,
    "limits.yaml": limitRange,
  },
  serverConfig: { embeddedControllers: ["serviceaccount", "clusterrole-aggregation", "resourcequota"] },
});
