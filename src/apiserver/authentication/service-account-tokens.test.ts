import { createPublicKey, type webcrypto } from "node:crypto";
import t from "tap";
import { isSignedBy, parseJws } from "../../auth/service-account/jws.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const CORE = "/api/v1/namespaces/default";
const ACCOUNT = `${CORE}/serviceaccounts/till`;
const OWN = "https://kubernetes.default.svc";

async function withAccount(): Promise<TestServer> {
  const server = await startTestServer({ authorizationModes: ["RBAC"] });
  await server.send(`POST ${CORE}/serviceaccounts`, { body: { metadata: { name: "till" } } });
  return server;
}

async function podOf(server: TestServer, name: string, serviceAccountName: string, nodeName: string): Promise<string> {
  const spec = { serviceAccountName, nodeName, containers: [{ name: "c", image: "i" }] };
  return (await server.send(`POST ${CORE}/pods`, { body: { metadata: { name }, spec } })).json.metadata.uid;
}

t.test("a TokenRequest gets a response with the group alias of the request", async (t) => {
  await using server = await withAccount();
  const requestToken = async (apiVersion: string | undefined) =>
    (await server.send(`POST ${ACCOUNT}/token`, { body: { apiVersion, kind: "TokenRequest", spec: {} } })).json
      .apiVersion;
  for (const apiVersion of ["authentication.k8s.io/v1", "authentication.svc.io/v1"]) {
    t.equal(await requestToken(apiVersion), apiVersion);
  }
  t.equal(await requestToken(undefined), "authentication.k8s.io/v1");
});

t.test("a TokenRequest binds to existing objects of the account", async (t) => {
  await using server = await withAccount();
  await server.send("POST /api/v1/nodes", { body: { metadata: { name: "n1" } } });
  const uid = await podOf(server, "web", "till", "n1");
  await podOf(server, "other", "default", "gone");
  await podOf(server, "lost", "till", "gone");
  const requestToken = (boundObjectRef: object) =>
    server.send(`POST ${ACCOUNT}/token`, { body: { spec: { boundObjectRef } } });
  const pod = { kind: "Pod", apiVersion: "v1", name: "web" };
  const payload = async (reference: object) =>
    parseJws((await requestToken(reference)).json.status.token)?.payload["kubernetes.io"];
  t.match(await payload({ ...pod, uid }), { pod: { name: "web", uid }, node: { name: "n1", uid: /^[\w-]{36}$/ } });
  t.same(((await payload({ ...pod, name: "lost" })) as { node: object }).node, { name: "gone" });
  t.match(await requestToken({ ...pod, uid: "else" }), {
    status: 409,
    json: {
      message:
        /^Operation cannot be fulfilled on Pod "web": the UID in the bound object reference \(else\) does not match/,
    },
  });
  t.match(await requestToken({ ...pod, name: "other" }), {
    status: 400,
    json: { message: 'cannot bind token for serviceaccount "till" to pod running with different serviceaccount name.' },
  });
  t.equal((await requestToken({ ...pod, name: "" })).status, 400);
  t.equal((await server.send(`POST ${CORE}/serviceaccounts/nobody/token`, { body: { spec: {} } })).status, 404);
});

t.test("a token that is bound to a pod gets 401 after the pod is deleted", async (t) => {
  await using server = await withAccount();
  await podOf(server, "web", "till", "n1");
  const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "web" };
  const { token } = (await server.send(`POST ${ACCOUNT}/token`, { body: { spec: { boundObjectRef } } })).json.status;
  const whoami = () =>
    server.send("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", {
      body: {},
      user: "",
      headers: { authorization: `Bearer ${token}` },
    });
  t.match((await whoami()).json.status.userInfo, {
    username: "system:serviceaccount:default:till",
    extra: { "authentication.kubernetes.io/pod-name": ["web"] },
  });
  await server.send(`DELETE ${CORE}/pods/web?gracePeriodSeconds=0`);
  t.equal((await whoami()).status, 401);
});

t.test("issuer discovery serves the keys that verify tokens", async (t) => {
  await using server = await withAccount();
  const open = { user: "till", headers: { accept: "*/*" } };
  t.equal((await server.send("GET /openid/v1/jwks", open)).status, 403, "not allowed without a binding");
  const page = await server.send("GET /.well-known/openid-configuration");
  t.same(page.json, {
    issuer: OWN,
    jwks_uri: "https://192.0.2.1:6443/openid/v1/jwks",
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
  });
  t.equal(page.headers["cache-control"], "public, max-age=3600");
  const jwks = await server.send("GET /openid/v1/jwks");
  t.equal(jwks.headers["content-type"], "application/jwk-set+json");
  const { json: refusal } = await server.send("GET /openid/v1/jwks", { headers: { accept: "application/json" } });
  t.match(refusal, { code: 406, message: /Available representations: application\/jwk-set\+json$/ });
  const { token } = (await server.send(`POST ${ACCOUNT}/token`, { body: { spec: {} } })).json.status;
  const jws = parseJws(token);
  const key = jwks.json.keys.find(({ kid }: { kid: string }) => kid === jws?.keyId) as webcrypto.JsonWebKey;
  t.ok(jws !== undefined && isSignedBy(jws, createPublicKey({ key, format: "jwk" })));
});
