import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { systemClock } from "../../std/time/clock.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";

const CA = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const MAP = "kube-root-ca.crt";

t.test("every namespace has a default service account, which is recreated after a delete", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount"] });
  await waitForObject(client, serviceAccountKind, "default", "kube-system", (found) => found !== undefined);
  await client.create(namespaceKind, { metadata: { name: "shop" } });
  const first = await waitForObject(client, serviceAccountKind, "default", "shop", (found) => found !== undefined);
  await client.delete(serviceAccountKind, { name: "default", namespace: "shop" });
  const uid = first?.metadata?.uid;
  await waitForObject(client, serviceAccountKind, "default", "shop", (o) => o !== undefined && o.metadata?.uid !== uid);
  t.same(
    (await client.list(configMapKind, { namespace: "default" })).items,
    [],
    "this controller does no more than its own work",
  );
});

t.test("every namespace has the ConfigMap of the cluster's CA, which is restored after a change", async (t) => {
  const client = await startInMemoryCluster(t, {
    embeddedControllers: ["root-ca-certificate-publisher"],
    clusterCa: CA,
  });
  const published = await waitForObject(client, configMapKind, MAP, "default", (found) => found !== undefined);
  t.same(published?.data, { "ca.crt": CA });
  t.match(published?.metadata?.annotations, { "kubernetes.io/description": /CA bundle/ });
  await client.update(configMapKind, { ...published, data: { "ca.crt": "another" } });
  await waitForObject(client, configMapKind, MAP, "default", (found) => found?.data?.["ca.crt"] === CA);
  await client.delete(configMapKind, { name: MAP, namespace: "default" });
  await waitForObject(client, configMapKind, MAP, "default", (found) => found !== undefined);
});

t.test("a terminating namespace gets no new objects, and is deleted", async (t) => {
  const client = await startInMemoryCluster(t, { clusterCa: CA });
  await client.create(namespaceKind, { metadata: { name: "shop" } });
  await waitForObject(client, serviceAccountKind, "default", "shop", (found) => found !== undefined);
  await waitForObject(client, configMapKind, MAP, "shop", (found) => found !== undefined);
  await client.delete(namespaceKind, { name: "shop" });
  await waitForObject(client, namespaceKind, "shop", undefined, (found) => found === undefined);
  t.same((await client.list(serviceAccountKind, { namespace: "shop" })).items, []);
  t.same((await client.list(configMapKind, { namespace: "shop" })).items, []);
});

t.test(
  "no CA is published when none is configured, and no service account is created without the controller",
  async (t) => {
    const serving = { ...defaultConfig.serving, certDir: t.testdir() };
    const client = await startInMemoryCluster(t, { embeddedControllers: ["root-ca-certificate-publisher"], serving });
    await client.create(namespaceKind, { metadata: { name: "shop" } });
    await systemClock.sleep(100);
    t.same((await client.list(configMapKind, { namespace: "default" })).items, []);
    t.same((await client.list(serviceAccountKind)).items, []);
  },
);
