/** Two instances of all controllers over one server, as with a controller manager beside it, and their requests. */
import t, { type Test } from "tap";
import { builtinScheme } from "../../api/builtin.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { startControllers } from "../../controllers/controller-manager.ts";
import type { Handler, HttpResponse } from "../../http/message.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { type Logger, silentLogger } from "../../std/log/logger.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";
import { waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const CA = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const namespace = "default";
const isGone = (object: ApiObject | undefined): boolean => object === undefined;

interface Observed {
  readonly client: Client;
  /** The requests of the controllers: `GET /api/v1/pods`. */
  readonly requests: string[];
  readonly errors: string[];
  /** Ends all watches; until `heal`, every request gets this response. */
  break(response: HttpResponse): void;
  heal(): void;
}

async function observed(t: Test, instances: number, clock: Clock = systemClock): Promise<Observed> {
  const config = {
    ...defaultConfig,
    authorizationModes: ["Node", "RBAC"],
    embeddedControllers: [],
    garbageCollector: true,
  };
  const { server } = await createApiServer(config, { clock, log: silentLogger }, () => "");
  const requests: string[] = [];
  const errors: string[] = [];
  const log: Logger = {
    ...silentLogger,
    error: (message, error) => void errors.push(`${message}: ${error instanceof Error ? error.stack : String(error)}`),
    child: () => log,
  };
  let broken: HttpResponse | undefined;
  let cut = new AbortController();
  const transport: Handler = async (request) => {
    requests.push(`${request.method} ${request.path}?${request.query}`);
    if (broken !== undefined) return broken;
    const signal = AbortSignal.any([request.signal, cut.signal]);
    return await server.handler({ ...request, signal });
  };
  const clientFor: Parameters<typeof startControllers>[1]["clientFor"] = (user) =>
    createClient({ transport, headers: { authorization: `Bearer ${server.loopbackToken(user)}` } });
  const deps = { clientFor, clock, random: systemRandom, log, clusterCa: CA, kinds: builtinScheme().kinds() };
  const running = Array.from({ length: instances }, () => startControllers(["*"], deps));
  t.teardown(async () => {
    for (const one of running) await one[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const client = createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });
  const brk = (response: HttpResponse): void => {
    broken = response;
    cut.abort(new DOMException("cut", "AbortError"));
    cut = new AbortController();
  };
  const heal = (): void => {
    broken = undefined;
  };
  return { client, requests, errors, break: brk, heal };
}

async function map(client: Client, name: string, metadata: ConfigMap["metadata"] = {}): Promise<ConfigMap> {
  return await client.create(configMapKind, { metadata: { name, namespace, ...metadata } });
}

function ownedBy({ metadata }: ConfigMap): NonNullable<ConfigMap["metadata"]> {
  const { name = "", uid = "" } = metadata ?? {};
  return { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name, uid, blockOwnerDeletion: true }] };
}

t.test("two instances of each controller do not conflict", async (t) => {
  const { client, errors } = await observed(t, 2);
  await client.create(namespaceKind, { metadata: { name: "large" } });
  await waitForObject(client, serviceAccountKind, "default", "large", (found) => found !== undefined);
  for (let start = 0; start < 1_200; start += 100) {
    const names = Array.from({ length: 100 }, (_, i) => `map-${start + i}`);
    await Promise.all(names.map((name) => map(client, name, { namespace: "large" })));
  }
  await client.delete(namespaceKind, { name: "large" });
  await waitForObject(client, namespaceKind, "large", undefined, isGone);
  t.same(
    (await client.list(configMapKind, { namespace: "large" })).items,
    [],
    "more than a page of objects was deleted",
  );
  for (const propagationPolicy of ["Background", "Foreground", "Orphan"] as const) {
    const owner = await map(client, "owner");
    for (let i = 0; i < 20; i++) await map(client, `child-${i}`, ownedBy(owner));
    await client.delete(configMapKind, { name: "owner", namespace }, { propagationPolicy });
    await waitForObject(client, configMapKind, "owner", namespace, isGone);
    for (let i = 0; i < 20; i++) {
      const name = `child-${i}`;
      if (propagationPolicy !== "Orphan") await waitForObject(client, configMapKind, name, namespace, isGone);
      else t.same((await client.get(configMapKind, { name, namespace })).metadata?.ownerReferences ?? [], []);
    }
  }
  const rules = [{ verbs: ["get"], apiGroups: ["example.com"], resources: ["widgets"] }];
  const labels = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
  await client.create(clusterRoleKind, { metadata: { name: "widgets", labels }, rules });
  const hasWidgets = (role: ClusterRole | undefined): boolean => JSON.stringify(role?.rules).includes("widgets");
  const settled = await waitForObject(client, clusterRoleKind, "admin", undefined, hasWidgets);
  await systemClock.sleep(300);
  const { metadata } = await client.get(clusterRoleKind, { name: "admin" });
  t.equal(metadata?.resourceVersion, settled?.metadata?.resourceVersion, "the object is not written again");
  t.same(errors, []);
});

t.test("idle controllers send no requests", async (t) => {
  const clock = new FakeClock();
  const { client, requests, errors } = await observed(t, 1, clock);
  await client.create(namespaceKind, { metadata: { name: "held" } });
  await map(client, "child", { namespace: "held", finalizers: ["example.com/hold"] });
  for (let second = 0; second < 5; second++) {
    await clock.advance(1_000);
    // The server spreads requests over turns of the event loop.
    await systemClock.sleep(50);
  }
  requests.length = 0;
  await clock.advance(60_000);
  t.same(requests, [], "no namespace is deleted");
  await client.delete(namespaceKind, { name: "held" });
  await clock.advance(60_000);
  requests.length = 0;
  await clock.advance(60_000);
  const rounds = requests.filter((request) => request.includes("/namespaces/held/pods")).length;
  t.ok(rounds > 0 && rounds <= 8, `${rounds} checks in a minute of a namespace with a finalizer`);
  t.same(errors, []);
});

t.test("controllers recover after failures of their watches", async (t) => {
  const clock = new FakeClock();
  const answers = {
    expired: { code: 410, reason: "Expired" },
    unauthorized: { code: 401, reason: "Unauthorized" },
    away: { code: 503, reason: "ServiceUnavailable" },
  };
  const fixture = await observed(t, 1, clock);
  const { client } = fixture;
  for (let second = 0; second < 5; second++) await clock.advance(1_000);
  for (const [name, { code, reason }] of Object.entries(answers)) {
    const body = Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "Status", status: "Failure", code, reason }));
    fixture.break({ status: code, headers: { "content-type": "application/json" }, body });
    const owner = await map(client, `owner-of-${name}`);
    await map(client, `child-of-${name}`, ownedBy(owner));
    await client.create(namespaceKind, { metadata: { name } });
    await clock.advance(40_000);
    await client.delete(configMapKind, { name: `owner-of-${name}`, namespace }, { propagationPolicy: "Background" });
    fixture.heal();
    for (let second = 0; second < 120; second += 5) await clock.advance(5_000);
    const children = await client.list(configMapKind, { namespace, fieldSelector: `metadata.name=child-of-${name}` });
    t.same(children.items, [], `${name}: dependents are deleted`);
    const accounts = await client.list(serviceAccountKind, { namespace: name });
    t.match(accounts.items, [{ metadata: { name: "default" } }], `${name}: the new namespace has its account`);
  }
});

t.test("pods of a deleted namespace are deleted before other objects", async (t) => {
  const { client } = await observed(t, 2);
  await client.create(namespaceKind, { metadata: { name: "shop" } });
  await waitForObject(client, serviceAccountKind, "default", "shop", (found) => found !== undefined);
  const spec = { containers: [{ name: "a", image: "web:1" }] };
  await client.create(podKind, {
    metadata: { name: "web", namespace: "shop", finalizers: ["example.com/hold"] },
    spec,
  });
  await map(client, "settings", { namespace: "shop" });
  await client.delete(namespaceKind, { name: "shop" });
  // As in Kubernetes, the conditions do not mention the pods.
  const left = await waitForObject(
    client,
    namespaceKind,
    "shop",
    undefined,
    (found) => found?.status?.conditions !== undefined,
  );
  t.match(
    left?.status?.conditions?.filter(({ status }) => status !== "False"),
    [],
  );
  t.ok(
    await client.get(configMapKind, { name: "settings", namespace: "shop" }),
    "the ConfigMap of the pod still exists",
  );
  await client.patch(podKind, { name: "web", namespace: "shop" }, "merge", { metadata: { finalizers: [] } });
  await waitForObject(client, namespaceKind, "shop", undefined, isGone);
});
