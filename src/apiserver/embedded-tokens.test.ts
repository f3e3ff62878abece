import t from "tap";
import { namespaceKind } from "../api/core/namespace-kind.ts";
import { secretKind } from "../api/core/secret-kind.ts";
import { serviceAccountKind } from "../api/core/service-account-kind.ts";
import { parseJws } from "../auth/service-account/jws.ts";
import { cluster, until } from "./embedded-cluster.ts";

const CA = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const TYPE = "kubernetes.io/service-account-token";

t.test("a secret that asks for an account's token is given one, and goes with the account", async (t) => {
  const client = await cluster(t, { embeddedControllers: ["serviceaccount-token"], clusterCa: CA });
  await client.create(namespaceKind, { metadata: { name: "shop" } });
  const account = await client.create(serviceAccountKind, { metadata: { name: "till", namespace: "shop" } });
  const annotations = { "kubernetes.io/service-account.name": "till" };
  await client.create(secretKind, { metadata: { name: "t", namespace: "shop", annotations }, type: TYPE });
  const filled = await until(client, secretKind, "t", "shop", (found) => found?.data?.token !== undefined);
  const text = (name: string): string => Buffer.from(filled?.data?.[name] ?? "", "base64").toString();
  t.same([text("namespace"), text("ca.crt")], ["shop", CA]);
  t.equal(filled?.metadata?.annotations?.["kubernetes.io/service-account.uid"], account.metadata?.uid);
  t.match(parseJws(text("token"))?.payload, {
    iss: "kubernetes/serviceaccount",
    sub: "system:serviceaccount:shop:till",
    "kubernetes.io/serviceaccount/secret.name": "t",
  });
  await client.delete(serviceAccountKind, { name: "till", namespace: "shop" });
  await until(client, secretKind, "t", "shop", (found) => found === undefined);
});

t.test("bootstrap tokens go when their time is over", async (t) => {
  const client = await cluster(t, { embeddedControllers: ["tokencleaner"] });
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
    await until(client, secretKind, name, namespace, (found) => found === undefined);
  }
  const left = (await client.list(secretKind, { namespace: "kube-system" })).items.map((each) => each.metadata?.name);
  t.same(left, ["bootstrap-token-cccccc", "bootstrap-token-dddddd"]);
});
