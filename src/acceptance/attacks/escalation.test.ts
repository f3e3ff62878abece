/** Privilege escalation: each attempt is refused and changes nothing. */
import { setImmediate } from "node:timers/promises";
import t from "tap";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createCertificateRequest as makeSigningRequest } from "../../auth/pki/certificate-signing.ts";
import type { UserInfo } from "../../auth/user.ts";
import { startTestServer, type TestResponse, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { makeCertificate } from "../../testing/http/test-certificates.ts";

const GROUP = "rbac.authorization.k8s.io";
const RBAC = `/apis/${GROUP}/v1`;
const SHOP = `${RBAC}/namespaces/shop`;
const CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const WHO = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const PODS = { verbs: ["get"], apiGroups: [""], resources: ["pods"] };
const EVERYTHING = { verbs: ["*"], apiGroups: ["*"], resources: ["*"] };
const PATCHES = {
  "merge patch": "application/merge-patch+json",
  "strategic merge patch": "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};

type Rule = Readonly<Record<string, readonly string[]>>;

const to = (name: string, kind = "ClusterRole") => ({ apiGroup: GROUP, kind, name });
const user = (name: string) => ({ kind: "User", apiGroup: GROUP, name });
const typed = (kind: string, body: object) => ({ apiVersion: `${GROUP}/v1`, kind, ...body });

async function create(server: TestServer, path: string, body: object): Promise<TestResponse> {
  const response = await server.send(`POST ${path}`, { body });
  if (response.status !== 201) throw new Error(response.text);
  return response;
}

/** Grants the rules in all namespaces, with a ClusterRole and a ClusterRoleBinding `of-NAME`. */
async function allow(server: TestServer, name: string, ...rules: readonly Rule[]): Promise<void> {
  await create(server, `${RBAC}/clusterroles`, { metadata: { name: `of-${name}` }, rules });
  const binding = { metadata: { name: `of-${name}` }, subjects: [user(name)], roleRef: to(`of-${name}`) };
  await create(server, `${RBAC}/clusterrolebindings`, binding);
}

async function cluster(): Promise<TestServer> {
  const admission = { ...defaultConfig.admission, enabled: ["NodeRestriction"] };
  const server = await startTestServer({ authorizationModes: ["Node", "RBAC"], admission });
  await create(server, "/api/v1/namespaces", { metadata: { name: "shop" } });
  return server;
}

t.test("a user who can write bindings cannot bind a role with permissions that the user lacks", async (t) => {
  await using server = await cluster();
  const bindings = { apiGroups: [GROUP], resources: ["rolebindings", "clusterrolebindings"] };
  await allow(server, "eve", { ...bindings, verbs: ["create", "update", "patch", "get", "delete"] }, PODS);
  await create(server, `${SHOP}/roles`, { metadata: { name: "all" }, rules: [EVERYTHING] });
  const mine = { metadata: { name: "mine" }, subjects: [user("eve")], roleRef: to("of-eve") };
  const bound = await server.send(`POST ${SHOP}/rolebindings`, { body: mine, user: "eve" });
  t.equal(bound.status, 201, "a role with permissions of her own");
  const bad = (name: string, more: object = {}) => ({ metadata: { name }, subjects: [user("eve")], ...more });
  const admin = { roleRef: to("cluster-admin") };
  const refused: readonly (readonly [string, object])[] = [
    [`POST ${RBAC}/clusterrolebindings`, bad("x", admin)],
    [`POST ${RBAC}/clusterrolebindings?dryRun=All`, bad("x", admin)],
    [`POST ${RBAC}/clusterrolebindings`, { ...bad("x", admin), metadata: { generateName: "x-" } }],
    [`POST /apis/rbac.authorization.svc.io/v1/clusterrolebindings`, bad("x", admin)],
    [`PUT ${RBAC}/clusterrolebindings/x`, bad("x", admin)],
    [`POST ${SHOP}/rolebindings`, bad("x", admin)],
    [`POST ${SHOP}/rolebindings`, bad("x", { roleRef: to("all", "Role") })],
    [`POST ${SHOP}/rolebindings`, bad("x", { subjects: [{ kind: "Group", apiGroup: GROUP, name: "g" }], ...admin })],
    [`POST ${SHOP}/rolebindings`, bad("x", { subjects: [{ kind: "ServiceAccount", name: "default" }], ...admin })],
    [`PUT ${SHOP}/rolebindings/x`, bad("x", admin)],
  ];
  for (const [line, body] of refused) {
    t.equal((await server.send(line, { body, user: "eve" })).status, 403, `${line} ${JSON.stringify(body)}`);
  }
  const other = typed("ClusterRoleBinding", { metadata: { name: "cluster-admin" }, subjects: [user("eve")], ...admin });
  for (const [how, type] of Object.entries(PATCHES)) {
    const line = `PATCH ${RBAC}/clusterrolebindings/cluster-admin?fieldManager=eve${how === "apply" ? "&force=true" : ""}`;
    const response = await server.send(line, { body: other, user: "eve", headers: { "content-type": type } });
    t.equal(response.status, 403, `more subjects by ${how}`);
  }
  const operations = [{ op: "add", path: "/subjects/-", value: user("eve") }];
  const type = { "content-type": "application/json-patch+json" };
  const patched = await server.send(`PATCH ${RBAC}/clusterrolebindings/cluster-admin`, {
    body: operations,
    user: "eve",
    headers: type,
  });
  t.equal(patched.status, 403, "more subjects by JSON patch");
  const rebound = { ...bound.json, ...admin };
  const response = await server.send(`PUT ${SHOP}/rolebindings/mine`, { body: rebound, user: "eve" });
  t.ok([403, 422].includes(response.status), "another roleRef in an existing binding");
  t.equal((await server.send("GET /api/v1/secrets", { user: "eve" })).status, 403, "her permissions are unchanged");
});

t.test("a user who can write roles cannot add rules that exceed the user's own", async (t) => {
  await using server = await cluster();
  const roles = { apiGroups: [GROUP], resources: ["roles", "clusterroles"] };
  await allow(server, "eve", { ...roles, verbs: ["create", "update", "patch", "get"] }, PODS);
  const wider: readonly Rule[] = [
    EVERYTHING,
    { verbs: ["get"], apiGroups: ["*"], resources: ["pods"] },
    { verbs: ["get"], apiGroups: [""], resources: ["*"] },
    { verbs: ["*"], apiGroups: [""], resources: ["pods"] },
    { verbs: ["get"], apiGroups: [""], resources: ["pods/log"] },
    { verbs: ["get"], apiGroups: [""], resources: ["pods/*"] },
    { verbs: ["get"], apiGroups: [""], resources: ["*/status"] },
    { verbs: ["get"], apiGroups: [""], resources: ["pods", "secrets"] },
    { verbs: ["escalate"], apiGroups: [GROUP], resources: ["roles"] },
    { verbs: ["bind"], apiGroups: [GROUP], resources: ["clusterroles"], resourceNames: ["cluster-admin"] },
    { verbs: ["impersonate"], apiGroups: [""], resources: ["groups"] },
  ];
  for (const rule of wider) {
    for (const path of [`${SHOP}/roles`, `${RBAC}/clusterroles`]) {
      for (const line of [`POST ${path}`, `PUT ${path}/x`]) {
        const body = { metadata: { name: "x" }, rules: [rule] };
        t.equal((await server.send(line, { body, user: "eve" })).status, 403, `${line} ${JSON.stringify(rule)}`);
      }
    }
  }
  const page = { metadata: { name: "x" }, rules: [{ verbs: ["get"], nonResourceURLs: ["*"] }] };
  t.equal(
    (await server.send(`POST ${RBAC}/clusterroles`, { body: page, user: "eve" })).status,
    403,
    "non-resource URLs",
  );
  for (const [how, type] of Object.entries(PATCHES)) {
    const body = typed("ClusterRole", { metadata: { name: "of-eve" }, rules: [EVERYTHING] });
    const line = `PATCH ${RBAC}/clusterroles/of-eve?fieldManager=eve${how === "apply" ? "&force=true" : ""}`;
    const response = await server.send(line, { body, user: "eve", headers: { "content-type": type } });
    t.equal(response.status, 403, `her own role by ${how}`);
  }
});

t.test("the verbs bind and escalate for one role apply to no other role", async (t) => {
  await using server = await cluster();
  const named = (verb: string, resource: string) => ({
    verbs: [verb],
    apiGroups: [GROUP],
    resources: [resource],
    resourceNames: ["till"],
  });
  const write = { apiGroups: [GROUP], verbs: ["create", "update", "get"] };
  const resources = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
  await allow(server, "eve", { ...write, resources }, named("bind", "clusterroles"), named("escalate", "roles"));
  const secrets = { ...PODS, resources: ["secrets"] };
  await create(server, `${RBAC}/clusterroles`, { metadata: { name: "till" }, rules: [secrets] });
  await create(server, `${SHOP}/roles`, { metadata: { name: "till" }, rules: [secrets] });
  const binding = (name: string, roleRef: object) => ({ metadata: { name }, subjects: [user("bob")], roleRef });
  const role = (name: string) => ({ metadata: { name }, rules: [EVERYTHING] });
  const cases: readonly (readonly [number, string, object])[] = [
    [201, `POST ${SHOP}/rolebindings`, binding("a", to("till"))],
    [403, `POST ${SHOP}/rolebindings`, binding("b", to("till", "Role"))],
    [403, `POST ${SHOP}/rolebindings`, binding("till", to("cluster-admin"))],
    [403, `POST ${RBAC}/clusterrolebindings`, binding("till", to("cluster-admin"))],
    [200, `PUT ${SHOP}/roles/till`, role("till")],
    [403, `POST ${SHOP}/roles`, role("more")],
    [403, `POST ${SHOP}/roles`, { ...role("more"), metadata: { generateName: "till" } }],
    [403, `PUT ${SHOP}/roles/more`, role("more")],
    [403, `PUT ${RBAC}/clusterroles/till`, role("till")],
    [403, `PUT /apis/rbac.authorization.svc.io/v1/clusterroles/till`, role("till")],
  ];
  for (const [status, line, body] of cases) {
    t.equal((await server.send(line, { body, user: "eve" })).status, status, `${line} ${JSON.stringify(body)}`);
  }
});

t.test("an aggregation rule needs all permissions, and labels for aggregation bypass no check", async (t) => {
  await using server = await cluster();
  const roles = { apiGroups: [GROUP], resources: ["clusterroles"], verbs: ["create", "update", "patch", "get"] };
  await allow(server, "eve", roles, PODS);
  const selectAll = { clusterRoleSelectors: [{ matchLabels: {} }] };
  const aggregated = { metadata: { name: "x" }, aggregationRule: selectAll };
  t.match(await server.send(`POST ${RBAC}/clusterroles`, { body: aggregated, user: "eve" }), {
    status: 403,
    json: { message: /must have cluster-admin privileges to use the aggregationRule/ },
  });
  const merge = { "content-type": "application/merge-patch+json" };
  const line = `PATCH ${RBAC}/clusterroles/of-eve`;
  t.equal((await server.send(line, { body: { aggregationRule: selectAll }, user: "eve", headers: merge })).status, 403);
  for (const role of ["admin", "edit", "view"]) {
    const labels = { [`${GROUP}/aggregate-to-${role}`]: "true" };
    const body = { metadata: { name: "y", labels }, rules: [{ ...PODS, resources: ["secrets"] }] };
    t.equal((await server.send(`POST ${RBAC}/clusterroles`, { body, user: "eve" })).status, 403, role);
  }
});

t.test("permission to impersonate one user covers no other user, group, uid or extra field", async (t) => {
  await using server = await cluster();
  await allow(server, "eve", { verbs: ["impersonate"], apiGroups: [""], resources: ["users"], resourceNames: ["bob"] });
  const as = (headers: Readonly<Record<string, string>>) => server.send(WHO, { body: {}, user: "eve", headers });
  t.match((await as({ "impersonate-user": "bob" })).json.status.userInfo, { username: "bob" });
  const refused: readonly Readonly<Record<string, string>>[] = [
    { "impersonate-user": "admin" },
    { "impersonate-user": "bob", "impersonate-group": "system:masters" },
    { "impersonate-user": "bob", "impersonate-group": "a, system:masters" },
    { "impersonate-user": "bob", "impersonate-uid": "1" },
    { "impersonate-user": "bob", "impersonate-extra-scopes": "all" },
    { "impersonate-user": "bob", "impersonate-extra-%2e%2e%2fusers": "bob" },
    { "impersonate-user": "system:serviceaccount:shop:default" },
    { "impersonate-user": "system:serviceaccount::bob" },
    { "impersonate-user": "system:node:n1", "impersonate-group": "system:nodes" },
    { "impersonate-user": "system:anonymous" },
    { "impersonate-user": "bob\u00a0" },
  ];
  for (const headers of refused) t.equal((await as(headers)).status, 403, JSON.stringify(headers));
  await allow(server, "ann", {
    verbs: ["impersonate"],
    apiGroups: [""],
    resources: ["serviceaccounts"],
    resourceNames: ["till"],
  });
  const till = { "impersonate-user": "system:serviceaccount:shop:boss" };
  t.equal((await server.send(WHO, { body: {}, user: "ann", headers: till })).status, 403, "another account");
});

t.test("permission to create tokens of one account covers no other account and none of its Pods", async (t) => {
  await using server = await cluster();
  for (const name of ["till", "boss"])
    await create(server, "/api/v1/namespaces/shop/serviceaccounts", { metadata: { name } });
  const spec = { serviceAccountName: "boss", containers: [{ name: "c", image: "i" }] };
  await create(server, "/api/v1/namespaces/shop/pods", { metadata: { name: "boss" }, spec });
  const tokens = {
    verbs: ["create"],
    apiGroups: [""],
    resources: ["serviceaccounts/token"],
    resourceNames: ["till"],
  };
  await allow(server, "eve", tokens);
  const requestToken = async (account: string, more: object = {}) =>
    (
      await server.send(`POST /api/v1/namespaces/shop/serviceaccounts/${account}/token`, {
        body: { spec: more },
        user: "eve",
      })
    ).status;
  t.equal(await requestToken("till"), 201);
  t.equal(await requestToken("boss"), 403);
  t.equal(await requestToken("till", { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "boss" } }), 400);
  t.equal(await requestToken("till%2f..%2fboss"), 403);
});

t.test("approval of a certificate request needs permission for its signer; system:masters is refused", async (t) => {
  await using server = await cluster();
  const requests = { apiGroups: ["certificates.k8s.io"], verbs: ["create", "get", "update", "patch"] };
  const all = [
    "certificatesigningrequests",
    "certificatesigningrequests/approval",
    "certificatesigningrequests/status",
  ];
  await allow(server, "eve", { ...requests, resources: all });
  const signerName = "kubernetes.io/kube-apiserver-client";
  const requestCertificate = async (name: string, organizations: readonly string[]) => {
    const { request } = await makeSigningRequest({ commonName: "eve", organizations });
    const spec = { request: Buffer.from(request).toString("base64"), signerName, usages: ["client auth"] };
    return await server.send(`POST ${CSRS}`, { body: { metadata: { name }, spec }, user: "eve" });
  };
  t.equal((await requestCertificate("master", ["system:masters"])).status, 403);
  const created = await requestCertificate("plain", ["shop"]);
  t.equal(created.status, 201);
  t.equal(created.json.spec.username, "eve", "the server sets the username");
  const conditions = [{ type: "Approved", status: "True", reason: "Mine", message: "" }];
  const approved = { ...created.json, status: { conditions } };
  t.equal((await server.send(`PUT ${CSRS}/plain/approval`, { body: approved, user: "eve" })).status, 403);
  const signature = await makeCertificate({ subject: [{ CN: ["eve"] }] });
  const signed = { ...created.json, status: { certificate: Buffer.from(signature.cert).toString("base64") } };
  t.equal((await server.send(`PUT ${CSRS}/plain/status`, { body: signed, user: "eve" })).status, 403);
  const forged = { ...created.json, spec: { ...created.json.spec, username: "admin", groups: ["system:masters"] } };
  const { json } = await server.send(`PUT ${CSRS}/plain`, { body: forged, user: "eve" });
  t.match(json.spec, { username: "eve" }, "the username does not change");
});

/** Two nodes with a pod each, and the objects that each pod refers to, which have the pod's name. */
async function twoNodes(): Promise<TestServer> {
  const server = await cluster();
  const core = "/api/v1/namespaces/shop";
  for (const [node, name] of [
    ["n1", "mine"],
    ["n2", "theirs"],
  ] as const) {
    await create(server, "/api/v1/nodes", { metadata: { name: node } });
    await create(server, `${core}/secrets`, { metadata: { name }, data: { mark: "R09MRA==" } });
    await create(server, `${core}/configmaps`, { metadata: { name }, data: { mark: "R09MRA==" } });
    await create(server, `${core}/serviceaccounts`, { metadata: { name } });
    const volumes = [
      { name: "s", secret: { secretName: name } },
      { name: "m", configMap: { name } },
    ];
    const containers = [{ name: "c", image: "i" }];
    await create(server, `${core}/pods`, {
      metadata: { name },
      spec: { nodeName: node, serviceAccountName: name, containers, volumes },
    });
  }
  return server;
}

function asNode(server: TestServer, more: Partial<UserInfo> = {}) {
  const node: UserInfo = { name: "system:node:n1", uid: "", groups: ["system:nodes"], extra: {}, ...more };
  const authorization = `Bearer ${server.parts.server.loopbackToken(node)}`;
  return (line: string, body?: unknown, type = "application/json") =>
    server.send(line, { body, headers: { authorization, "content-type": type } });
}

t.test("a node cannot read or write the objects of another node", async (t) => {
  await using server = await twoNodes();
  const send = asNode(server);
  const core = "/api/v1/namespaces/shop";
  // The node authorizer's graph receives pods by a watch.
  for (let attempt = 0; attempt < 1000 && (await send(`GET ${core}/secrets/mine`)).status !== 200; attempt++)
    await setImmediate();
  t.match(await send(`GET ${core}/secrets/mine`), { status: 200, text: /R09MRA==/ }, "a Secret of its own pod");
  const merge = "application/merge-patch+json";
  const refused: readonly (readonly [string, unknown?, string?])[] = [
    ...["secrets", "configmaps"].flatMap((kind): readonly (readonly [string, unknown?, string?])[] => [
      [`GET ${core}/${kind}/theirs`],
      [`GET ${core}/${kind}`],
      [`GET /api/v1/${kind}`],
      [`GET ${core}/${kind}?watch=1`],
      [`GET ${core}/${kind}?fieldSelector=metadata.name%3Dtheirs`],
      [`GET /api/v1/watch/namespaces/shop/${kind}/theirs`],
      [`GET ${core}/${kind}/mine/../theirs`],
      [`PUT ${core}/${kind}/mine`, { metadata: { name: "mine" } }],
      [`PATCH ${core}/${kind}/mine`, { data: {} }, merge],
      [`DELETE ${core}/${kind}/mine`],
      [`POST ${core}/${kind}`, { metadata: { name: "new" } }],
    ]),
    [`POST ${core}/serviceaccounts/theirs/token`, { spec: {} }],
    [`GET ${core}/pods/theirs`],
    [`GET ${core}/pods`],
    [`GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn2`],
    [`GET /api/v1/pods?fieldSelector=spec.nodeName!%3Dn1`],
    [`POST ${core}/pods/theirs/binding`, { target: { kind: "Node", name: "n1" } }],
    [`GET ${core}/pods/theirs/exec?command=sh`],
    ["GET /api/v1/nodes/n2"],
    ["PATCH /api/v1/nodes/n2/status", { status: {} }, merge],
    ["PATCH /api/v1/nodes/n2", { metadata: { labels: { a: "b" } } }, merge],
    ["DELETE /api/v1/nodes/n2"],
    ["GET /api/v1/nodes/n2/proxy/pods"],
    ["PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", { metadata: { name: "n2" } }],
    ["PUT /apis/coordination.k8s.io/v1/namespaces/shop/leases/n1", { metadata: { name: "n1" } }],
    ["GET /apis/storage.k8s.io/v1/csinodes/n2"],
    [
      `POST ${RBAC}/clusterrolebindings`,
      { metadata: { name: "x" }, subjects: [user("system:node:n1")], roleRef: to("cluster-admin") },
    ],
  ];
  for (const [line, body, type] of refused) {
    const { status, text } = await send(line, body, type);
    t.ok(status === 403 || status === 404, `${status} ${line}`);
    t.notMatch(text, /R09MRA==/, line);
  }
  const merged = { "content-type": merge };
  await server.send(`PATCH ${core}/pods/mine/status`, { body: { status: { phase: "Succeeded" } }, headers: merged });
  await server.send(`DELETE ${core}/pods/mine?gracePeriodSeconds=0`);
  for (let attempt = 0; attempt < 1000 && (await send(`GET ${core}/secrets/mine`)).status === 200; attempt++)
    await setImmediate();
  t.equal((await send(`GET ${core}/secrets/mine`)).status, 403, "a Secret of its own pod after the pod is deleted");
});

t.test("a node gains no permission by creating pods, labels, tokens or certificate requests", async (t) => {
  await using server = await twoNodes();
  const send = asNode(server);
  const core = "/api/v1/namespaces/shop";
  for (let attempt = 0; attempt < 1000 && (await send(`GET ${core}/secrets/mine`)).status !== 200; attempt++)
    await setImmediate();
  const { uid } = (await server.send("GET /api/v1/nodes/n1")).json.metadata as { uid: string };
  const theirs = (await server.send(`GET ${core}/pods/theirs`)).json.metadata.uid as string;
  const owner = { apiVersion: "v1", kind: "Node", name: "n1", uid, controller: true };
  const mirror = (spec: object, more: object = {}) => ({
    metadata: {
      ...{ name: "new", annotations: { "kubernetes.io/config.mirror": "x" }, ownerReferences: [owner], ...more },
    },
    spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], ...spec },
  });
  const volumes = [{ name: "s", secret: { secretName: "theirs" } }];
  const env = [{ name: "E", valueFrom: { secretKeyRef: { name: "theirs", key: "mark" } } }];
  const labels = { "node-restriction.kubernetes.io/trusted": "true" };
  const merge = "application/merge-patch+json";
  const csr = async (commonName: string, organizations: readonly string[], usages: readonly string[]) => {
    const { request } = await makeSigningRequest({ commonName, organizations });
    const signer = usages.includes("server auth") ? "kubelet-serving" : "kube-apiserver-client-kubelet";
    const spec = { request: Buffer.from(request).toString("base64"), signerName: `kubernetes.io/${signer}`, usages };
    return { metadata: { name: "new" }, spec };
  };
  const serving = ["digital signature", "server auth"];
  const client = ["digital signature", "client auth"];
  const toPod = (name: string, more: object = {}) => ({
    spec: { boundObjectRef: { kind: "Pod", apiVersion: "v1", name, ...more } },
  });
  const refused: readonly (readonly [string, unknown, string?])[] = [
    [`POST ${core}/pods`, mirror({ volumes })],
    [`POST ${core}/pods`, mirror({ containers: [{ name: "c", image: "i", env }] })],
    [`POST ${core}/pods`, mirror({ imagePullSecrets: [{ name: "theirs" }] })],
    [`POST ${core}/pods`, mirror({ serviceAccountName: "theirs" })],
    [`POST ${core}/pods`, mirror({ nodeName: "n2" })],
    [`POST ${core}/pods`, mirror({}, { annotations: {} })],
    [`POST ${core}/pods`, mirror({}, { ownerReferences: [] })],
    [`PATCH ${core}/pods/mine`, { spec: { volumes } }, merge],
    [`PATCH ${core}/pods/mine`, { metadata: { labels: { app: "theirs" } } }, merge],
    [`PATCH ${core}/pods/mine/status`, { metadata: { labels: { app: "theirs" } } }, merge],
    [`PATCH ${core}/pods/mine/ephemeralcontainers`, { spec: { ephemeralContainers: [{ name: "e" }] } }, merge],
    [`PATCH ${core}/pods/mine/resize`, { spec: { containers: [] } }, merge],
    [`POST ${core}/pods/theirs/eviction`, { metadata: { name: "theirs" } }],
    [`DELETE ${core}/pods/theirs`, undefined],
    ["POST /api/v1/nodes", { metadata: { name: "n3" } }],
    ["PATCH /api/v1/nodes/n1", { metadata: { labels } }, merge],
    ["PATCH /api/v1/nodes/n1/status", { metadata: { labels } }, merge],
    ["PATCH /api/v1/nodes/n1", { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } }, merge],
    [`POST ${core}/serviceaccounts/mine/token`, { spec: {} }],
    [`POST ${core}/serviceaccounts/mine/token`, toPod("mine")],
    [`POST ${core}/serviceaccounts/mine/token`, toPod("theirs", { uid: theirs })],
    [`POST ${core}/serviceaccounts/theirs/token`, toPod("mine")],
    [`POST ${CSRS}`, await csr("system:node:n2", ["system:nodes"], client)],
    [`POST ${CSRS}`, await csr("system:node:n2", ["system:nodes"], serving)],
    [`POST ${CSRS}`, await csr("admin", ["system:masters"], client)],
  ];
  for (const [line, body, type] of refused) {
    const { status, text } = await send(line, body, type);
    t.ok([403, 404, 409, 422].includes(status), `${status} ${line} ${JSON.stringify(body)} ${text}`);
  }
  t.equal((await send(`GET ${core}/secrets/theirs`)).status, 403, "the other node's Secret is still refused");
  t.equal((await send(`POST ${core}/pods`, mirror({}))).status, 201, "a mirror pod without references is accepted");
});

t.test("a user with only the name or only the group of a node gets 403", async (t) => {
  await using server = await twoNodes();
  const send = asNode(server);
  const line = "GET /api/v1/namespaces/shop/secrets/mine";
  for (let attempt = 0; attempt < 1000 && (await send(line)).status !== 200; attempt++) await setImmediate();
  const variants: readonly Partial<UserInfo>[] = [
    { groups: [] },
    { groups: ["System:nodes"] },
    { name: "n1" },
    { name: "system:node:" },
    { name: "system:node" },
    { name: "System:node:n1" },
    { name: "system:node:N1" },
    { name: "system:node:n1 " },
    { name: "system:node:n1/x" },
    { name: "system:nodes:n1" },
  ];
  for (const variant of variants) t.equal((await asNode(server, variant)(line)).status, 403, JSON.stringify(variant));
});
