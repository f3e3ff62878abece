import t from "tap";
import { eventKind } from "../../api/core/event/kind.ts";
import type { Event } from "../../api/core/event/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Kind } from "../../api/kind.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import { notFound } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { objectsOf, START, type SyncOnceOptions, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import type { RunController } from "../controller.ts";
import { runServiceCidrController } from "./service-cidr-controller.ts";

const FINALIZER = "networking.k8s.io/service-cidr-finalizer";
const READY = "Kubernetes Service CIDR is ready";
const IN_USE =
  "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

/** The time of conditions that the controller did not write. */
const BEFORE = "2026-01-01T00:00:00Z";

interface RangeOptions {
  readonly finalizers?: readonly string[];
  readonly ready?: { readonly status: "True" | "False"; readonly reason?: string; readonly message: string };
  /** How long ago it was deleted. */
  readonly deletedMs?: number;
}

function range(
  cidrs: readonly string[],
  { finalizers = [FINALIZER], ready = { status: "True", message: READY }, deletedMs }: RangeOptions = {},
): ServiceCIDR {
  const deletionTimestamp = deletedMs === undefined ? undefined : new Date(START - deletedMs).toISOString();
  const condition = { type: "Ready", reason: "", lastTransitionTime: BEFORE, ...ready };
  return {
    metadata: { name: cidrs.join("+"), finalizers, deletionTimestamp },
    spec: { cidrs },
    status: { conditions: ready.message === "" ? [] : [condition] },
  };
}

function address(name: string, manager = "ipallocator.k8s.io"): IPAddress {
  return { metadata: { name, labels: { "ipaddress.kubernetes.io/managed-by": manager } } };
}

const runServed =
  (kinds: readonly Kind[]): RunController =>
  (deps) =>
    runServiceCidrController({ ...deps, kinds });
const kinds = [serviceCIDRKind, ipAddressKind] as readonly Kind[];

/** The condition or the finalizers that a write sets. */
function show({ verb, kind, object }: Write): string {
  if (kind === (eventKind as Kind)) {
    const { type, reason, message, source } = object as Event;
    return `${source?.component} ${type} ${reason}: ${message}`;
  }
  const { metadata, status } = object as ServiceCIDR;
  const [condition] = status?.conditions ?? [];
  if (condition !== undefined && condition.lastTransitionTime !== BEFORE)
    return `${condition.status} ${condition.reason}: ${condition.message}`;
  return `${verb} ${JSON.stringify(metadata)}`.includes("$delete") ? REMOVED : `${verb} with ${metadata?.finalizers}`;
}

async function writesFor(
  object: ServiceCIDR,
  others: readonly ServiceCIDR[] = [],
  addresses: readonly IPAddress[] = [],
  options: SyncOnceOptions = {},
): Promise<readonly string[]> {
  const objects = [objectsOf(serviceCIDRKind, ...others), objectsOf(ipAddressKind, ...addresses)];
  return await syncOnce(runServed(kinds), objectsOf(serviceCIDRKind, object), objects, { show, ...options });
}

const UNSET = { status: "True", message: "" } as const;
const ADDED = `patch with ${FINALIZER}`;
const REMOVED = `patch without ${FINALIZER}`;
const BLOCKED = `False Terminating: ${IN_USE}`;
const V4 = ["10.1.0.0/24"];
const DUAL = ["10.1.0.0/24", "fd00::/112"];
const deleted = { deletedMs: 10_000 };

t.test("runServiceCidrController() adds the finalizer and sets Ready", async (t) => {
  const table: readonly (readonly [title: string, object: ServiceCIDR, writes: readonly string[]])[] = [
    ["a new one", range(V4, { finalizers: [], ready: UNSET }), [ADDED, `True : ${READY}`]],
    ["only the condition is missing", range(V4, { ready: UNSET }), [`True : ${READY}`]],
    ["only the finalizer is missing", range(V4, { finalizers: [] }), [ADDED]],
    ["complete", range(V4), []],
    [
      "the API server's own condition",
      range(V4, { ready: { status: "True", message: "Kubernetes default Service CIDR is ready" } }),
      [`True : ${READY}`],
    ],
  ];
  for (const [title, object, writes] of table) t.strictSame(await writesFor(object), writes, title);
});

t.test("a deleted ServiceCIDR stays while an address needs it, and 10 s", async (t) => {
  const blocked = { status: "False", reason: "Terminating", message: IN_USE } as const;
  const table: readonly (readonly [
    title: string,
    object: ServiceCIDR,
    others: readonly ServiceCIDR[],
    addresses: readonly string[],
    writes: readonly string[],
  ])[] = [
    ["unused", range(V4, deleted), [], ["10.2.0.1"], [REMOVED]],
    ["deleted 9 s ago", range(V4, { deletedMs: 9000 }), [], [], []],
    ["in use", range(V4, deleted), [], ["10.1.0.9"], [BLOCKED]],
    ["in use, reported before", range(V4, { ...deleted, ready: blocked }), [], ["10.1.0.9"], []],
    ["in use by IPv6", range(DUAL, deleted), [range(V4)], ["10.1.0.9", "fd00::9"], [BLOCKED]],
    ["IPv4 is covered, IPv6 unused", range(DUAL, deleted), [range(V4)], ["10.1.0.9"], [REMOVED]],
    ["a larger one covers it", range(V4, deleted), [range(["10.0.0.0/8"])], ["10.1.0.9"], [REMOVED]],
    ["an equal one covers it", range(V4, deleted), [range(["10.1.0.0/24", "fd00::/64"])], ["10.1.0.9"], [REMOVED]],
    ["a smaller one contains the address", range(V4, deleted), [range(["10.1.0.8/29"])], ["10.1.0.9"], [REMOVED]],
    ["a smaller one contains another", range(V4, deleted), [range(["10.1.0.0/29"])], ["10.1.0.9"], [BLOCKED]],
    ["network address of the smaller one", range(V4, deleted), [range(["10.1.0.8/29"])], ["10.1.0.8"], [BLOCKED]],
    ["broadcast address of the smaller", range(V4, deleted), [range(["10.1.0.8/29"])], ["10.1.0.15"], [BLOCKED]],
    ["network and broadcast address", range(V4, deleted), [], ["10.1.0.0", "10.1.0.255"], [REMOVED]],
    ["only another finalizer", range(V4, { ...deleted, finalizers: ["a/b"] }), [], [], []],
    ["no CIDR", range([], deleted), [], ["10.1.0.9"], [REMOVED]],
  ];
  for (const [title, object, others, addresses, writes] of table) {
    const found = await writesFor(
      object,
      others,
      addresses.map((each) => address(each)),
    );
    t.strictSame(found, writes, title);
  }
  t.strictSame(await writesFor(range(V4, deleted), [], [address("10.1.0.9", "mine")]), [REMOVED], "another manager's");
  const later = range(V4, { deletedMs: 9000 });
  t.strictSame(await writesFor(later, [], [], { advanceMs: 999 }), []);
  t.strictSame(await writesFor(later, [], [], { advanceMs: 1000 }), [REMOVED]);
});

t.test("a failed write is retried; an event reports that of the status", async (t) => {
  let failures = 0;
  const failOnce = (message: string) => (write: string) => {
    if (write.startsWith(message) && failures++ === 0) throw new Error("the server does not answer");
  };
  const created = range(V4, { finalizers: [], ready: UNSET });
  const retry = { advanceMs: 31_000 };
  const ready = `True : ${READY}`;
  const event =
    "service-cidr-controller Warning KubernetesServiceCIDRError: " +
    "The ServiceCIDR Status can not be set to Ready=True";
  const afterStatus = await writesFor(created, [], [], { fail: failOnce("True"), ...retry });
  t.strictSame(afterStatus, [ADDED, ready, event, ADDED, ready]);
  failures = 0;
  const afterFinalizer = await writesFor(created, [], [], { fail: failOnce("patch"), ...retry });
  t.strictSame(afterFinalizer, [ADDED, ADDED, ready]);
  const gone = (): void => {
    throw notFound({ group: "networking.svc.io", resource: "servicecidrs", name: "x" });
  };
  t.strictSame(await writesFor(range(V4, { ready: UNSET }), [], [], { fail: gone, ...retry }), [ready]);
  t.strictSame(await writesFor(range(V4, deleted), [], [], { fail: gone, ...retry }), [REMOVED]);
});

t.test("nothing is watched or written where ServiceCIDRs are not served", async (t) => {
  const created = objectsOf(serviceCIDRKind, range(V4, { ready: UNSET }));
  t.strictSame(await syncOnce(runServed([ipAddressKind] as readonly Kind[]), created, [], { show }), []);
});

async function conditionOf(client: Client, name: string): Promise<string> {
  const { status } = await client.get(serviceCIDRKind, { name });
  return status?.conditions?.map(({ type, status, message }) => `${type}=${status}: ${message}`).join() ?? "";
}

t.test("with the permissions of its account, beside the API server, which maintains the default one", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["service-cidr-controller"] }, clock);
  const exists = async (name: string): Promise<boolean> =>
    (await client.list(serviceCIDRKind)).items.some(({ metadata }) => metadata?.name === name);
  await passTime(clock, 2000);
  t.equal(await conditionOf(client, "kubernetes"), `Ready=True: ${READY}`);
  await client.create(serviceCIDRKind, { metadata: { name: "more" }, spec: { cidrs: ["10.9.0.0/28"] } });
  await passTime(clock, 1000);
  const { metadata } = await client.get(serviceCIDRKind, { name: "more" });
  t.strictSame(metadata?.finalizers, [FINALIZER]);
  t.equal(await conditionOf(client, "more"), `Ready=True: ${READY}`);
  const versions = async () => (await client.list(serviceCIDRKind)).items.map((each) => each.metadata?.resourceVersion);
  const before = await versions();
  await passTime(clock, 65_000);
  t.strictSame(await versions(), before, "neither writes again");

  const spec = { clusterIP: "10.9.0.3", ports: [{ port: 80 }] };
  await client.create(serviceKind, { metadata: { name: "web", namespace: "default" }, spec });
  await client.delete(serviceCIDRKind, { name: "more" });
  await passTime(clock, 15_000);
  t.equal(await conditionOf(client, "more"), `Ready=False: ${IN_USE}`);
  const other = { metadata: { name: "other", namespace: "default" }, spec: { ...spec, clusterIP: "10.9.0.4" } };
  await t.rejects(client.create(serviceKind, other), /does not match the current range|not in the valid range/);
  await client.delete(serviceKind, { name: "web", namespace: "default" });
  await passTime(clock, 1000);
  t.equal(await exists("more"), false);

  await client.delete(serviceCIDRKind, { name: "kubernetes" });
  await passTime(clock, 15_000);
  t.equal(await conditionOf(client, "kubernetes"), `Ready=False: ${IN_USE}`, "default/kubernetes has an address");
  await client.create(serviceCIDRKind, { metadata: { name: "parent" }, spec: { cidrs: ["10.0.0.0/16"] } });
  await passTime(clock, 15_000);
  t.equal(await conditionOf(client, "kubernetes"), `Ready=True: ${READY}`, "recreated after its deletion");
});
