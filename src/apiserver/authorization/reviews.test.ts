import t from "tap";
import { builtinScheme } from "../../api/builtin.ts";
import { decodeCbor } from "../../schema/cbor/decode.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

const AUTHORIZATION = "/apis/authorization.k8s.io/v1";
const pods = { verb: "list", resource: "pods", namespace: "default" };

t.test("a SubjectAccessReview returns whether a user is allowed, and the reason", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["Node", "RBAC"] });
  const review = async (spec: object) =>
    (await server.send(`POST ${AUTHORIZATION}/subjectaccessreviews`, { body: { spec } })).json;
  t.same((await review({ user: "eve", resourceAttributes: pods })).status, { allowed: false });
  t.match((await review({ user: "eve", groups: ["system:masters"], resourceAttributes: pods })).status, {
    allowed: true,
  });
  const node = { user: "system:node:n1", groups: ["system:nodes"] };
  const own = { requirements: [{ key: "spec.nodeName", operator: "In", values: ["n1"] }] };
  t.match(await review({ ...node, resourceAttributes: { verb: "list", resource: "pods", fieldSelector: own } }), {
    apiVersion: "authorization.k8s.io/v1",
    status: { allowed: true },
  });
  t.match((await review({ ...node, resourceAttributes: { verb: "list", resource: "pods" } })).status, {
    allowed: false,
  });
  t.match((await review({ user: "eve", nonResourceAttributes: { verb: "get", path: "/secret" } })).status, {
    allowed: false,
  });
});

t.test("reviews return null lists of extra values as they were sent, in every format", async (t) => {
  await using server = await startTestServer({ cbor: true });
  const body = { spec: { user: "eve", extra: { none: null, empty: [], one: [null] }, resourceAttributes: pods } };
  const extra = { none: null, empty: [], one: [""] };
  const paths = ["subjectaccessreviews", "namespaces/default/localsubjectaccessreviews"];
  for (const path of paths.map((name) => `POST ${AUTHORIZATION}/${name}`)) {
    t.strictSame((await server.send(path, { body })).json.spec.extra, extra, path);
    const accepting = async (accept: string) => (await server.send(path, { body, headers: { accept } })).bytes;
    t.match(Buffer.from(await accepting("application/yaml")).toString(), /none: null/, path);
    t.match(decodeCbor(await accepting("application/cbor")), { spec: { extra } }, path);
    const protobuf = await accepting("application/vnd.kubernetes.protobuf");
    const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
    const again = (await server.send(path, { body: protobuf, headers })).json;
    t.strictSame(again.spec.extra, { ...extra, none: [] }, "protobuf has no null");
  }
});

t.test(
  "SelfSubjectAccessReview, SelfSubjectRulesReview and SelfSubjectReview describe the requesting user",
  async (t) => {
    await using server = await startTestServer({ authorizationModes: ["RBAC"] });
    const review = `POST ${AUTHORIZATION}/selfsubjectaccessreviews`;
    const body = { spec: { resourceAttributes: pods } };
    t.equal((await server.send(review, { body })).json.status.allowed, true);
    t.equal((await server.send(review, { body, user: "eve" })).json.status.allowed, false);
    const rules = (
      await server.send(`POST ${AUTHORIZATION}/selfsubjectrulesreviews`, {
        body: { spec: { namespace: "default" } },
        user: "eve",
      })
    ).json.status;
    t.equal(rules.incomplete, false);
    t.ok(
      rules.resourceRules.some(({ resources }: { resources: string[] }) => resources.includes("selfsubjectreviews")),
    );
    t.ok(
      rules.nonResourceRules.some((rule: { nonResourceURLs: string[] }) => rule.nonResourceURLs.includes("/version")),
    );
    const who = await server.send("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", { body: {}, user: "eve" });
    t.match(who.json.status.userInfo, { username: "eve", groups: ["system:authenticated"] });
  },
);

t.test("a TokenReview authenticates loopback tokens and rejects unknown ones", async (t) => {
  await using server = await startTestServer();
  const token = server.parts.server.loopbackToken({ name: "bob", uid: "7", groups: ["g"], extra: { k: ["v"] } });
  const review = async (spec: object) =>
    (await server.send("POST /apis/authentication.svc.io/v1/tokenreviews", { body: { spec } })).json;
  t.match((await review({ token })).status, {
    authenticated: true,
    user: { username: "bob", uid: "7", groups: ["g", "system:authenticated"], extra: { k: ["v"] } },
  });
  t.match((await review({ token: "x" })).status, { error: "invalid bearer token" });
  t.match((await review({ token, audiences: ["a"] })).status, { error: "invalid bearer token" });
  t.equal((await review({})).code, 400);
});

t.test("reviews are not stored", async (t) => {
  await using server = await startTestServer();
  t.equal((await server.send(`GET ${AUTHORIZATION}/subjectaccessreviews`)).status, 405);
  const { resources } = (await server.send(`GET ${AUTHORIZATION}`)).json;
  t.match(resources[0], { name: "localsubjectaccessreviews", verbs: ["create"] });
  t.notOk("storageVersionHash" in resources[0]);
});

t.test("a review requested as a table uses the next accepted media type, and otherwise gets 406", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["RBAC"] });
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const unstored = builtinScheme()
    .kinds()
    .filter(({ verbs }) => verbs.length === 1 && verbs[0] === "create")
    .filter(({ kind }) => kind !== "Binding");
  t.ok(unstored.length >= 6, unstored.map(({ kind }) => kind).join(" "));
  const paths = unstored.map(({ group, version, plural, namespaced }) => {
    return `/apis/${group}/${version}/${namespaced ? "namespaces/default/" : ""}${plural}`;
  });
  await server.send("POST /api/v1/namespaces/default/serviceaccounts", { body: { metadata: { name: "a" } } });
  for (const path of [...paths, "/api/v1/namespaces/default/serviceaccounts/a/token"]) {
    const send = async (accept: string) => await server.send(`POST ${path}`, { body: {}, headers: { accept } });
    t.match((await send(table)).json, { kind: "Status", code: 406, reason: "NotAcceptable" }, path);
    const { status, json } = await send(`${table},application/json`);
    t.not(status, 406, path);
    t.not(json.kind, "Table", path);
  }
});

t.test("a SelfSubjectRulesReview lists a bounded number of rules, and says that it is incomplete", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["RBAC"] });
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const rules = Array.from({ length: 6000 }, (_, i) => ({ apiGroups: ["g"], resources: [`r${i}`], verbs: ["get"] }));
  for (const name of ["a", "b", "c"]) {
    t.equal((await server.send(`POST ${rbac}/clusterroles`, { body: { metadata: { name }, rules } })).status, 201);
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
    const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "eve" }];
    await server.send(`POST ${rbac}/clusterrolebindings`, { body: { metadata: { name }, roleRef, subjects } });
  }
  const body = { spec: { namespace: "default" } };
  const { json } = await server.send(`POST ${AUTHORIZATION}/selfsubjectrulesreviews`, { body, user: "eve" });
  t.equal(json.status.incomplete, true);
  t.match(json.status.evaluationError, /^only the first 16\d\d\d of 18\d\d\d rules are listed$/);
  t.ok(json.status.resourceRules.length > 16_000);
});
