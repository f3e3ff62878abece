import t from "tap";
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { resourceQuotaKind } from "../../api/core/resource-quota/kind.ts";
import type { ResourceQuota } from "../../api/core/resource-quota/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const namespace = "default";
const controllers = { embeddedControllers: ["resourcequota", "serviceaccount"] };

type Amounts = Readonly<Record<string, string>>;

async function quota(client: Client, hard: Amounts, more: object = {}): Promise<void> {
  const object = { metadata: { name: "quota", namespace }, spec: { hard, ...more } } as ResourceQuota;
  await client.create(resourceQuotaKind, object);
  await waitForObject(client, resourceQuotaKind, "quota", namespace, (found) => found?.status?.hard !== undefined);
}

async function used(client: Client, wanted: Amounts): Promise<void> {
  const isWanted = (found: ResourceQuota | undefined): boolean =>
    Object.entries(wanted).every(([name, amount]) => found?.status?.used?.[name] === amount);
  await waitForObject(client, resourceQuotaKind, "quota", namespace, isWanted);
}

function pod(name: string, cpu = "100m"): Pod {
  const resources = { requests: { cpu }, limits: { cpu } };
  return {
    metadata: { name, namespace },
    spec: { automountServiceAccountToken: false, containers: [{ name: "a", image: "web:1", resources }] },
  } as Pod;
}

/** The messages of the forbidden requests. */
async function refusals(works: readonly Promise<unknown>[]): Promise<readonly string[]> {
  const ends = await Promise.allSettled(works);
  return ends.flatMap((end) => {
    if (end.status === "fulfilled") return [];
    if (end.reason instanceof StatusError && end.reason.status.code === 403) return [end.reason.message];
    throw end.reason;
  });
}

t.test("500 concurrent creates do not exceed a quota, and deleted pods release it", async (t) => {
  const client = await startInMemoryCluster(t, controllers);
  await quota(client, { pods: "40", "requests.cpu": "3", "limits.cpu": "100" });
  const names = Array.from({ length: 500 }, (_, i) => `p${i}`);
  const refused = await refusals(names.map((name) => client.create(podKind, pod(name))));
  t.equal(refused.length, 470);
  for (const text of new Set(refused.map((text) => text.replace(/"p\d+"/, "")))) {
    const parts = "requested: requests.cpu=100m, used: requests.cpu=3, limited: requests.cpu=3";
    t.equal(text, `pods  is forbidden: exceeded quota: quota, ${parts}`);
  }
  const { items } = await client.list(podKind, { namespace });
  t.equal(items.length, 30);
  await used(client, { pods: "30", "requests.cpu": "3", "limits.cpu": "3" });
  const [first, second, ...others] = items.map(({ metadata }) => metadata?.name ?? "");
  for (const name of [first!, second!]) await client.delete(podKind, { name, namespace }, { gracePeriodSeconds: 0 });
  await used(client, { pods: "28", "requests.cpu": "2800m" });
  const ended = await client.get(podKind, { name: others[0]!, namespace });
  await client.updateStatus(podKind, { ...ended, status: { ...ended.status, phase: "Succeeded" } });
  await used(client, { pods: "27", "requests.cpu": "2700m" });
  t.equal((await refusals([client.create(podKind, pod("more", "300m"))])).length, 0);
  await used(client, { pods: "28", "requests.cpu": "3" });
});

t.test("pods stay within a quota with concurrent creates, deletes and recounts", async (t) => {
  const client = await startInMemoryCluster(t, controllers);
  await quota(client, { "count/pods": "10" });
  let most = 0;
  const round = async (worker: number): Promise<void> => {
    for (let i = 0; i < 12; i++) {
      const name = `w${worker}-${i}`;
      const [why] = await refusals([client.create(podKind, pod(name))]);
      const { items } = await client.list(podKind, { namespace });
      most = Math.max(most, items.length);
      if (why === undefined) await client.delete(podKind, { name, namespace }, { gracePeriodSeconds: 0 });
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, worker) => round(worker)));
  t.ok(most <= 10, `${most} pods at most`);
  await used(client, { "count/pods": "0" });
});

t.test("objects of any kind are counted, and pods without required requests are rejected", async (t) => {
  const client = await startInMemoryCluster(t, controllers);
  await quota(client, { configmaps: "1", "count/configmaps": "5", "limits.memory": "1Gi" });
  const map = (name: string): ConfigMap => ({ metadata: { name, namespace } });
  await client.create(configMapKind, map("a"));
  t.same(await refusals([client.create(configMapKind, map("b")), client.create(podKind, pod("web"))]), [
    'configmaps "b" is forbidden: exceeded quota: quota, requested: configmaps=1, used: configmaps=1, limited: configmaps=1',
    'pods "web" is forbidden: failed quota: quota: must specify limits.memory for: a',
  ]);
  await client.delete(configMapKind, { name: "a", namespace });
  await used(client, { configmaps: "0", "count/configmaps": "0" });
  await client.create(configMapKind, map("b"));
});

t.test("a quota counts existing objects, also of resources that are added later", async (t) => {
  const client = await startInMemoryCluster(t, controllers);
  await waitForObject(client, configMapKind, "none", namespace, () => true);
  await client.create(podKind, pod("old"));
  await quota(client, { pods: "1" }, { scopes: ["NotBestEffort"] });
  await used(client, { pods: "1" });
  const found = await client.get(resourceQuotaKind, { name: "quota", namespace });
  await client.update(resourceQuotaKind, { ...found, spec: { ...found.spec, hard: { "requests.cpu": "1" } } });
  await used(client, { "requests.cpu": "100m" });
  const { status } = await client.get(resourceQuotaKind, { name: "quota", namespace });
  t.same(status, { hard: { "requests.cpu": "1" }, used: { "requests.cpu": "100m" } });
});

t.test("two servers over one store do not exceed a quota", async (t) => {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const servers = await Promise.all([1, 2].map(() => startTestServer({}, { store })));
  t.teardown(() => Promise.all(servers.map((server) => server[Symbol.asyncDispose]())));
  const [server] = servers;
  const path = `/api/v1/namespaces/${namespace}`;
  const hard = { configmaps: "20" };
  const { json } = await server!.send(`POST ${path}/resourcequotas`, {
    body: { metadata: { name: "quota" }, spec: { hard } },
  });
  const status = { hard, used: { configmaps: "0" } };
  await server!.send(`PUT ${path}/resourcequotas/quota/status`, { body: { ...json, status } });
  const creations = Array.from({ length: 200 }, async (_, i) => {
    const response = await servers[i % 2]!.send(`POST ${path}/configmaps`, { body: { metadata: { name: `m${i}` } } });
    return response.status;
  });
  const answers = await Promise.all(creations);
  t.equal(answers.filter((code) => code === 201).length, 20);
  t.equal(answers.filter((code) => code === 403).length, 180);
  const found = await servers[1]!.send(`GET ${path}/resourcequotas/quota`);
  t.same(found.json.status, { hard, used: { configmaps: "20" } });
});

t.test("custom resources are counted", async (t) => {
  const client = await startInMemoryCluster(t, controllers);
  const names = { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" };
  const schema = { openAPIV3Schema: { type: "object" } };
  const versions = [{ name: "v1", served: true, storage: true, schema }];
  const spec = { group: "example.com", scope: "Namespaced", names, versions };
  const name = "widgets.example.com";
  const definition = { metadata: { name }, spec } as CustomResourceDefinition;
  await client.create(customResourceDefinitionKind, definition);
  const established = await waitForObject(client, customResourceDefinitionKind, name, undefined, (found) =>
    (found?.status?.conditions ?? []).some(({ type, status }) => type === "Established" && status === "True"),
  );
  const kind = createCustomKind(established!, "v1");
  await quota(client, { "count/widgets.example.com": "1" });
  await client.create(kind, { metadata: { name: "a", namespace } });
  t.same(await refusals([client.create(kind, { metadata: { name: "b", namespace } })]), [
    'widgets.example.com "b" is forbidden: exceeded quota: quota, requested: count/widgets.example.com=1, ' +
      "used: count/widgets.example.com=1, limited: count/widgets.example.com=1",
  ]);
  await client.delete(kind, { name: "a", namespace });
  await used(client, { "count/widgets.example.com": "0" });
});
