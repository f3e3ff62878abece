import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { type ApiServer, createApiServer } from "../../apiserver/server.ts";
import { parseJws } from "../../auth/service-account/jws.ts";
import { DAY_MS, INVALID_SINCE_LABEL, LEGACY_TRACKING } from "../../auth/service-account/legacy-tokens.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { startControllers } from "../../controllers/controller-manager.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";

const CA = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const TYPE = "kubernetes.io/service-account-token";

t.test("a token secret of a service account gets a token, and is deleted with the account", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount-token"], clusterCa: CA });
  await client.create(namespaceKind, { metadata: { name: "shop" } });
  const account = await client.create(serviceAccountKind, { metadata: { name: "till", namespace: "shop" } });
  const annotations = { "kubernetes.io/service-account.name": "till" };
  await client.create(secretKind, { metadata: { name: "t", namespace: "shop", annotations }, type: TYPE });
  const filled = await waitForObject(client, secretKind, "t", "shop", (found) => found?.data?.token !== undefined);
  const text = (name: string): string => Buffer.from(filled?.data?.[name] ?? "", "base64").toString();
  t.same([text("namespace"), text("ca.crt")], ["shop", CA]);
  t.equal(filled?.metadata?.annotations?.["kubernetes.io/service-account.uid"], account.metadata?.uid);
  t.match(parseJws(text("token"))?.payload, {
    iss: "kubernetes/serviceaccount",
    sub: "system:serviceaccount:shop:till",
    "kubernetes.io/serviceaccount/secret.name": "t",
  });
  const type = "svc.io/service-account-token";
  await client.create(secretKind, { metadata: { name: "own", namespace: "shop", annotations }, type });
  await waitForObject(client, secretKind, "own", "shop", (found) => found?.data?.token !== undefined);
  await client.delete(serviceAccountKind, { name: "till", namespace: "shop" });
  for (const name of ["t", "own"])
    await waitForObject(client, secretKind, name, "shop", (found) => found === undefined);
});

t.test("a deleted token secret is removed from the account's secrets", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount-token"] });
  const metadata = { name: "till", namespace: "default" };
  await client.create(serviceAccountKind, { metadata, secrets: [{ name: "t" }, { name: "other" }] });
  const annotations = { "kubernetes.io/service-account.name": "till" };
  await client.create(secretKind, { metadata: { name: "t", namespace: "default", annotations }, type: TYPE });
  await waitForObject(client, secretKind, "t", "default", (found) => found?.data?.token !== undefined);
  await client.delete(secretKind, { name: "t", namespace: "default" });
  const unlisted = await waitForObject(
    client,
    serviceAccountKind,
    "till",
    "default",
    (found) => found?.secrets?.length === 1,
  );
  t.same(unlisted?.secrets, [{ name: "other" }]);
});

t.test("cluster-info is signed with every signing bootstrap token", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["bootstrapsigner"] });
  const data = { kubeconfig: "apiVersion: v1" };
  await client.create(configMapKind, { metadata: { name: "cluster-info", namespace: "kube-public" }, data });
  const make = (id: string, namespace: string, more: Readonly<Record<string, string>>) =>
    client.create(secretKind, {
      metadata: { name: `bootstrap-token-${id}`, namespace },
      type: `bootstrap.${namespace === "svc-system" ? "svc" : "kubernetes"}.io/token`,
      stringData: { "token-id": id, "token-secret": "0123456789abcdef", ...more },
    });
  const signing = { "usage-bootstrap-signing": "true" };
  await make("aaaaaa", "kube-system", signing);
  await make("bbbbbb", "svc-system", { ...signing, expiration: "2999-01-01T00:00:00Z" });
  await make("cccccc", "kube-system", { ...signing, expiration: "2020-01-01T00:00:00Z" });
  await make("dddddd", "kube-system", { "usage-bootstrap-authentication": "true" });
  await make("eeeeee", "kube-system", { ...signing, "token-id": "ffffff" });
  const signatures = (found: { readonly data?: Readonly<Record<string, string>> | undefined } | undefined) =>
    Object.keys(found?.data ?? {}).filter((key) => key.startsWith("jws-"));
  const settled = (...ids: readonly string[]) =>
    waitForObject(client, configMapKind, "cluster-info", "kube-public", (found) => `${signatures(found)}` === `${ids}`);
  await settled("jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb");
  await client.delete(secretKind, { name: "bootstrap-token-aaaaaa", namespace: "kube-system" });
  await settled("jws-kubeconfig-bbbbbb");
});

/** Runs the cleaner with the permissions of its account at a later time. */
function cleanLater(server: ApiServer, ms: number) {
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + ms };
  const clientFor = (user: Parameters<ApiServer["loopbackToken"]>[0]): Client => {
    const headers = { authorization: `Bearer ${server.loopbackToken(user)}` };
    return createClient({ transport: server.handler, headers });
  };
  const deps = { clientFor, clusterCa: undefined, signing: undefined, signLegacy: undefined, kinds: [] };
  const log = silentLogger;
  return startControllers(["legacy-serviceaccount-token-cleaner"], { ...deps, clock, random: systemRandom, log });
}

t.test("unused auto-generated tokens are marked invalid, and deleted a year later", async (t) => {
  const config = { ...defaultConfig, authorizationModes: ["Node", "RBAC"] };
  const { server } = await createApiServer(config, { clock: systemClock, log: silentLogger }, () => "");
  t.teardown(() => server[Symbol.asyncDispose]());
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const client = createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });
  const namespace = "default";
  const listed = ["unused", "mounted"].map((name) => ({ name }));
  await client.create(serviceAccountKind, { metadata: { name: "old", namespace }, secrets: listed });
  const annotations = { "kubernetes.io/service-account.name": "old" };
  for (const name of ["unused", "mounted", "by-hand"]) {
    await client.create(secretKind, { metadata: { name, namespace, annotations }, type: TYPE });
  }
  await client.create(podKind, {
    metadata: { name: "web", namespace },
    spec: {
      containers: [{ name: "web", image: "web:1" }],
      volumes: [{ name: "token", secret: { secretName: "mounted" } }],
    },
  });
  const markOf = async (name: string) =>
    (await client.get(secretKind, { name, namespace })).metadata?.labels?.[INVALID_SINCE_LABEL];
  {
    await using _ = cleanLater(server, 400 * DAY_MS);
    await waitForObject(client, secretKind, "unused", namespace, (found) => found?.metadata?.labels !== undefined);
  }
  t.match(await markOf("unused"), /^\d{4}-\d\d-\d\d$/);
  {
    await using _ = cleanLater(server, 800 * DAY_MS);
    await waitForObject(client, secretKind, "unused", namespace, (found) => found === undefined);
  }
  t.same([await markOf("mounted"), await markOf("by-hand")], [undefined, undefined]);
  const tracking = await client.get(configMapKind, LEGACY_TRACKING);
  t.match(tracking.data?.since, /^\d{4}-\d\d-\d\d$/);
});

t.test("expired bootstrap tokens are deleted", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["tokencleaner"] });
  const make = (name: string, namespace: string, expiration: string, type: string) =>
    client.create(secretKind, { metadata: { name, namespace }, type, stringData: { expiration } });
  const type = "bootstrap.kubernetes.io/token";
  const past = "2020-01-01T00:00:00Z";
  await make("bootstrap-token-aaaaaa", "kube-system", past, type);
  await make("bootstrap-token-bbbbbb", "svc-system", past, "bootstrap.svc.io/token");
  await make("bootstrap-token-cccccc", "kube-system", "2999-01-01T00:00:00Z", type);
  await make("bootstrap-token-dddddd", "kube-system", past, "Opaque");
  await make("bootstrap-token-eeeeee", "kube-system", "whenever", type);
  for (const [name, namespace] of [
    ["bootstrap-token-aaaaaa", "kube-system"],
    ["bootstrap-token-bbbbbb", "svc-system"],
    ["bootstrap-token-eeeeee", "kube-system"],
  ] as const) {
    await waitForObject(client, secretKind, name, namespace, (found) => found === undefined);
  }
  const left = (await client.list(secretKind, { namespace: "kube-system" })).items.map((each) => each.metadata?.name);
  t.same(left, ["bootstrap-token-cccccc", "bootstrap-token-dddddd"]);
});
