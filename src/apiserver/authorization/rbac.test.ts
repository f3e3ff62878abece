import t from "tap";
import { createMemoryStore } from "../../storage/memory.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const SHOP = `${RBAC}/namespaces/shop`;

async function server(): Promise<TestServer> {
  const started = await startTestServer({ authorizationModes: ["Node", "RBAC"] });
  await started.send("POST /api/v1/namespaces", { body: { metadata: { name: "shop" } } });
  return started;
}

const reader = { rules: [{ verbs: ["get", "list"], apiGroups: [""], resources: ["pods"] }] };
const to = (kind: string, name: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name });
const user = (name: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind: "User", name });

t.test("a stored role binding takes effect with the next request", async (t) => {
  await using api = await server();
  const pods = async () => (await api.send("GET /api/v1/namespaces/shop/pods", { user: "eve" })).status;
  t.equal(await pods(), 403);
  await api.send(`POST ${SHOP}/roles`, { body: { metadata: { name: "reader" }, ...reader } });
  const binding = { metadata: { name: "eve" }, subjects: [user("eve")], roleRef: to("Role", "reader") };
  t.equal((await api.send(`POST ${SHOP}/rolebindings`, { body: binding })).status, 201);
  t.equal(await pods(), 200);
  t.equal((await api.send("GET /api/v1/namespaces/default/pods", { user: "eve" })).status, 403);
  await api.send(`DELETE ${SHOP}/rolebindings/eve`);
  t.equal(await pods(), 403);
});

/** Starts servers over one store, which survives each of them. */
function restartable() {
  const store = createMemoryStore({ clock: new FakeClock() });
  store[Symbol.asyncDispose] = async () => {};
  return () => startTestServer({ authorizationModes: ["RBAC"] }, { store });
}

t.test("the bootstrap policy is created at the first start and reconciled at the next", async (t) => {
  const start = restartable();
  const viewer = `${RBAC}/clusterroles/system:public-info-viewer`;
  {
    await using first = await start();
    t.ok((await first.send(`GET ${RBAC}/clusterroles`)).json.items.length >= 67);
    const patch = { "content-type": "application/merge-patch+json" };
    await first.send(`PATCH ${viewer}`, { body: { rules: [] }, headers: patch });
    const kept = { metadata: { annotations: { "rbac.authorization.kubernetes.io/autoupdate": "false" } }, rules: [] };
    await first.send(`PATCH ${RBAC}/clusterroles/system:discovery`, { body: kept, headers: patch });
    await first.send(`DELETE ${RBAC}/clusterrolebindings/system:basic-user`);
  }
  await using second = await start();
  t.match((await second.send(`GET ${viewer}`)).json.rules, [{ nonResourceURLs: /healthz/ }]);
  t.notOk((await second.send(`GET ${RBAC}/clusterroles/system:discovery`)).json.rules?.length, "not changed");
  t.equal((await second.send(`GET ${RBAC}/clusterrolebindings/system:basic-user`)).status, 200);
});

t.test("bootstrap bindings that name Kubernetes' group stay, and others are bound again", async (t) => {
  const path = `${RBAC}/clusterrolebindings`;
  const start = restartable();
  const names = ["system:basic-user", "system:monitoring"] as const;
  const uids: string[] = [];
  {
    await using first = await start();
    const group = "rbac.authorization.k8s.io";
    for (const name of names) {
      const { metadata, subjects, roleRef } = (await first.send(`GET ${path}/${name}`)).json;
      await first.send(`DELETE ${path}/${name}`);
      const body = {
        metadata: { name, labels: metadata.labels, annotations: metadata.annotations },
        subjects: subjects.map((subject: object) => ({ ...subject, apiGroup: group })),
        roleRef: { ...roleRef, apiGroup: group, ...(name === names[1] ? { name: "view" } : {}) },
      };
      uids.push((await first.send(`POST ${path}`, { body })).json.metadata.uid);
    }
  }
  await using second = await start();
  const [kept, bound] = await Promise.all(names.map(async (name) => (await second.send(`GET ${path}/${name}`)).json));
  t.equal(kept.metadata.uid, uids[0]);
  t.equal(kept.subjects.length, 1, "no subject is added by the other alias of its group");
  t.not(bound.metadata.uid, uids[1]);
  t.match(bound.roleRef, { name: "system:monitoring" });
});

t.test("a user cannot grant permissions that the user does not have", async (t) => {
  await using api = await server();
  const manager = { rules: [{ verbs: ["*"], apiGroups: ["rbac.authorization.svc.io"], resources: ["*"] }] };
  manager.rules[0]!.verbs = ["create", "get", "update", "patch"];
  await api.send(`POST ${SHOP}/roles`, { body: { metadata: { name: "manager" }, ...manager } });
  const bound = { metadata: { name: "eve" }, subjects: [user("eve")], roleRef: to("Role", "manager") };
  await api.send(`POST ${SHOP}/rolebindings`, { body: bound });
  const refused = await api.send(`POST ${SHOP}/roles`, { body: { metadata: { name: "x" }, ...reader }, user: "eve" });
  t.equal(refused.status, 403);
  t.match(refused.json.message, /user "eve" .* is attempting to grant RBAC permissions not currently held:/);
  t.match(refused.json.message, '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}');
  const more = { rules: [{ verbs: ["watch", "get"], apiGroups: [""], resources: ["secrets"], resourceNames: ["a"] }] };
  const answer = await api.send(`POST ${SHOP}/roles`, { body: { metadata: { name: "x" }, ...more }, user: "eve" });
  const what = '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["watch" "get"]}';
  t.match(answer.json.message, `(groups=["system:authenticated"]) is attempting to grant RBAC permissions`);
  t.match(answer.json.message, what);
  const admin = { metadata: { name: "x" }, subjects: [user("eve")], roleRef: to("ClusterRole", "cluster-admin") };
  t.equal((await api.send(`POST ${SHOP}/rolebindings`, { body: admin, user: "eve" })).status, 403);
  const missing = { ...admin, roleRef: to("Role", "none") };
  t.equal((await api.send(`POST ${SHOP}/rolebindings`, { body: missing, user: "eve" })).status, 404);
  const merge = { "content-type": "application/merge-patch+json" };
  const widened = await api.send(`PATCH ${SHOP}/roles/manager`, { body: reader, user: "eve", headers: merge });
  t.equal(widened.status, 403);
  const labelled = { metadata: { labels: { a: "b" } } };
  t.equal((await api.send(`PATCH ${SHOP}/roles/manager`, { body: labelled, user: "eve", headers: merge })).status, 200);
  const same = { metadata: { name: "same" }, ...manager };
  t.equal((await api.send(`POST ${SHOP}/roles`, { body: same, user: "eve" })).status, 201);
});

t.test("createEscalationCheck() rejects roles with too many combinations", async (t) => {
  await using api = await server();
  const rules = [{ verbs: ["create", "update"], apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles"] }];
  await api.send(`POST ${SHOP}/roles`, { body: { metadata: { name: "manager" }, rules } });
  const bound = { metadata: { name: "eve" }, subjects: [user("eve")], roleRef: to("Role", "manager") };
  await api.send(`POST ${SHOP}/rolebindings`, { body: bound });
  const many = (stem: string): readonly string[] => Array.from({ length: 2000 }, (_, i) => `${stem}${i}`);
  const bomb = { verbs: many("v"), apiGroups: many("g"), resources: many("r"), resourceNames: many("n") };
  const body = { metadata: { name: "x" }, rules: [bomb] };
  const { status, json } = await api.send(`POST ${SHOP}/roles`, { body, user: "eve" });
  t.equal(status, 403);
  t.match(json.message, /more than 20000 combinations of verbs, groups, resources and names/);
  t.equal(
    (await api.send(`POST ${SHOP}/roles`, { body })).status,
    201,
    "rules are not compared with the verb escalate",
  );
});

t.test("createEscalationCheck() uses the name in the path, and checks changes of labels", async (t) => {
  await using api = await server();
  const roles = { apiGroups: ["rbac.authorization.svc.io"], resources: ["clusterroles"] };
  const rules = [
    { ...roles, verbs: ["create", "get", "update", "patch"] },
    { ...roles, verbs: ["escalate"], resourceNames: ["mine"] },
  ];
  await api.send(`POST ${RBAC}/clusterroles`, { body: { metadata: { name: "manager" }, rules } });
  const binding = { metadata: { name: "eve" }, subjects: [user("eve")], roleRef: to("ClusterRole", "manager") };
  await api.send(`POST ${RBAC}/clusterrolebindings`, { body: binding });
  const mine = {
    apiVersion: `rbac.authorization.k8s.io/v1`,
    kind: "ClusterRole",
    metadata: { name: "mine" },
    ...reader,
  };
  const change = async (method: string, name: string, body: object, type = "application/merge-patch+json") => {
    const line = `${method} ${RBAC}/clusterroles${name}`;
    return (await api.send(line, { body, user: "eve", headers: method === "PATCH" ? { "content-type": type } : {} }))
      .status;
  };
  t.equal(await change("POST", "", mine), 403, "POST has no name in its path");
  t.equal(await change("PATCH", "/mine?fieldManager=e", mine, "application/apply-patch+yaml"), 201, "apply has one");
  t.equal(await change("PATCH", "/mine", { rules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }] }), 200);
  const labels = { labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" } };
  t.equal(
    await change("PATCH", "/cluster-admin", { metadata: labels }),
    403,
    "the label would aggregate the role into view",
  );
  t.equal(await change("PATCH", "/cluster-admin", { metadata: { finalizers: ["example.com/f"] } }), 200);
  t.equal(await change("PATCH", "/edit", { metadata: { labels: { a: "b" } } }), 403);
});

t.test("bindings of roles that are missing or unknown are refused as in Kubernetes", async (t) => {
  await using api = await server();
  const group = "rbac.authorization.k8s.io";
  const kinds = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
  const rules = [{ apiGroups: [group], resources: kinds, verbs: ["create", "update", "get"] }];
  await api.send(`POST ${RBAC}/clusterroles`, { body: { metadata: { name: "manager" }, rules } });
  const subjects = [user("eve")];
  const mine = { metadata: { name: "eve" }, subjects, roleRef: to("ClusterRole", "manager") };
  await api.send(`POST ${RBAC}/clusterrolebindings`, { body: mine });
  const bind = async (path: string, kind: string, name: string, sender: string) => {
    const body = { metadata: { name: "b" }, subjects, roleRef: to(kind, name) };
    return (await api.send(`POST ${path}`, { body, user: sender })).json;
  };
  const missing = await bind(`${SHOP}/rolebindings`, "Role", "none", "eve");
  t.match(missing, { code: 404, message: `rolebindings.${group} "none" not found`, details: { kind: "rolebindings" } });
  const alsoMissing = await bind(`${RBAC}/clusterrolebindings`, "ClusterRole", "none", "eve");
  t.match(alsoMissing, { code: 404, message: `clusterrolebindings.${group} "none" not found` });
  const unknown = await bind(`${SHOP}/rolebindings`, "Other", "none", "eve");
  t.match(unknown, { code: 500, message: 'unsupported role reference kind: "Other"' });
  t.notOk(unknown.reason);
  t.match(await bind(`${SHOP}/rolebindings`, "Other", "none", "admin"), { code: 422, message: /roleRef.kind: Unsupp/ });
  await bind(`${SHOP}/rolebindings`, "ClusterRole", "manager", "eve");
  const body = { metadata: { name: "b" }, subjects, roleRef: to("ClusterRole", "view") };
  const changed = (await api.send(`PUT ${SHOP}/rolebindings/b`, { body })).json;
  const shown = `rbac.RoleRef{APIGroup:"${group}", Kind:"ClusterRole", Name:"view"}`;
  t.match(changed, { code: 422, details: { causes: [{ message: `Invalid value: ${shown}: cannot change roleRef` }] } });
  const aggregated = { metadata: { name: "a" }, aggregationRule: { clusterRoleSelectors: [] } };
  const empty = (await api.send(`POST ${RBAC}/clusterroles`, { body: aggregated, user: "eve" })).json;
  t.match(empty, { code: 422, message: /at least one clusterRoleSelector required/ });
});

t.test("an allowed sender impersonates users, groups and extra fields", async (t) => {
  await using api = await server();
  const who = async (headers: Readonly<Record<string, string>>, user = "admin") => {
    const path = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
    const { status, json } = await api.send(path, { body: {}, headers, user });
    return status === 201 ? json.status.userInfo : json;
  };
  t.same(await who({ "impersonate-user": "eve" }), { username: "eve", groups: ["system:authenticated"] });
  // An empty group is a group, as in Kubernetes.
  const unnamed = await who({ "impersonate-user": "eve", "impersonate-group": "" });
  t.match(unnamed, { groups: ["", "system:authenticated"] });
  t.same(await who({ "impersonate-user": "eve", "impersonate-group": "a, b", "impersonate-extra-x%2Fy": "1" }), {
    username: "eve",
    groups: ["a", "b", "system:authenticated"],
    extra: { "x/y": ["1"] },
  });
  t.same((await who({ "impersonate-user": "system:serviceaccount:shop:till" })).groups, [
    "system:serviceaccounts",
    "system:serviceaccounts:shop",
    "system:authenticated",
  ]);
  t.match(await who({ "impersonate-user": "admin" }, "eve"), {
    code: 403,
    message:
      'users "admin" is forbidden: User "eve" cannot impersonate resource "users" in API group "" at the cluster scope',
  });
  const withoutUser = await api.send("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", {
    body: {},
    headers: { "impersonate-group": "system:masters" },
  });
  t.equal(withoutUser.status, 500);
  t.match(withoutUser.text, /requested \[\{Group {2}system:masters {4}\}\] without impersonating a user/);
  t.equal((await api.send("GET /api/v1/pods", { headers: { "impersonate-user": "eve" } })).status, 403);
});
