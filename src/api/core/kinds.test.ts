import t from "tap";
import { leaseKind } from "../coordination/lease/kind.ts";
import { fromCoreEvent, toCoreEvent } from "../events/event/conversion.ts";
import { eventsV1EventKind } from "../events/event/kind.ts";
import type { Event } from "../events/event/schema.ts";
import type { Kind, SubresourceStrategy } from "../kind.ts";
import { configMapKind } from "./config-map/kind.ts";
import { eventKind } from "./event/kind.ts";
import { namespaceKind } from "./namespace/kind.ts";
import { nodeKind } from "./node/kind.ts";
import { podKind } from "./pod/kind.ts";
import type { Pod, PodStatus } from "./pod/schema.ts";
import { secretKind } from "./secret/kind.ts";

const now = "2026-01-01T00:00:00Z";

function errorsOf<T extends object>(kind: Kind<T>, object: T): readonly string[] {
  return (kind.strategy.validate?.(object) ?? []).map((e) => `${e.type} ${e.field}`);
}

function statusOf(kind: Kind<Pod>): SubresourceStrategy<Pod> | undefined {
  return kind.subresources.find(({ name }) => name === "status")?.strategy;
}

t.test("podKind resets the status of a new pod and sets its QoS class", async (t) => {
  const sent: Pod = {
    spec: { containers: [{ name: "a" }] },
    status: { phase: "Running", podIP: "192.0.2.1" },
  };
  const created = podKind.strategy.prepareForCreate?.(sent, now);
  t.same(created?.status, { phase: "Pending", qosClass: "BestEffort" });
});

t.test("podKind separates writes of spec and status", async (t) => {
  const previous = { spec: { containers: [{ name: "a" }] }, status: { phase: "Running" as const } };
  const next = { spec: { containers: [{ name: "b" }] }, status: { phase: "Failed" as const } };
  t.same(podKind.strategy.prepareForUpdate?.(next, previous, now), {
    ...next,
    metadata: { generation: 1 },
    status: previous.status,
  });
  t.same(statusOf(podKind)?.prepareForUpdate(next, previous, now).spec, previous.spec);
});

t.test("podKind keeps podIP and podIPs consistent", async (t) => {
  const addresses = (status: PodStatus) => {
    const { podIP, podIPs } = statusOf(podKind)?.prepareForUpdate({ status }, {}, now).status ?? {};
    return { podIP, podIPs };
  };
  const both = { podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }] };
  t.same(addresses({ podIP: "10.0.0.1" }), both);
  t.same(addresses({ podIPs: [{ ip: "10.0.0.1" }] }), both);
  t.same(addresses({ podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.2" }] }), both, "the older one wins");
  t.same(addresses({}), { podIP: undefined, podIPs: undefined });
});

t.test("podKind has a grace period for scheduled, unfinished pods only", async (t) => {
  const grace = podKind.strategy.gracePeriodSeconds;
  const spec = { containers: [], nodeName: "n", terminationGracePeriodSeconds: 20 };
  t.equal(grace?.({ spec }, undefined), 20);
  t.equal(grace?.({ spec }, 5), 5);
  t.equal(grace?.({ spec: { containers: [] } }, 5), 0);
  t.equal(grace?.({ spec, status: { phase: "Succeeded" } }, 5), 0);
});

t.test("namespaceKind sets the name label, the finalizer and the phase", async (t) => {
  t.same(namespaceKind.strategy.setDefaults?.({ metadata: { name: "a" } }).metadata?.labels, {
    "kubernetes.io/metadata.name": "a",
  });
  t.same(namespaceKind.strategy.prepareForCreate?.({}, now), {
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  });
});

t.test("nodeKind rejects invalid taints and changes of immutable fields", async (t) => {
  t.same(errorsOf(nodeKind, { spec: { taints: [{ key: "", effect: "NoSchedule" }] } }), [
    "FieldValueInvalid metadata.taints[0].key",
    "FieldValueInvalid metadata.taints[0].key",
  ]);
  const change = nodeKind.strategy.validateUpdate?.({ spec: { providerID: "b" } }, { spec: { providerID: "a" } });
  t.same(
    change?.map((e) => e.field),
    ["spec.providerID"],
  );
});

t.test("configMapKind limits keys and size and enforces `immutable`", async (t) => {
  t.same(errorsOf(configMapKind, { data: { "a/b": "" } }), ["FieldValueInvalid data[a/b]"]);
  t.same(errorsOf(configMapKind, { data: { a: "x".repeat(1_048_577) } }), ["FieldValueTooLong "]);
  const update = configMapKind.strategy.validateUpdate;
  t.same(
    update?.({ immutable: true, data: { a: "2" } }, { immutable: true, data: { a: "1" } })?.map((e) => e.field),
    ["data"],
  );
  t.same(
    update?.({ data: {} }, { immutable: true, data: {} })?.map((e) => e.field),
    ["immutable"],
  );
});

t.test("secretKind merges stringData and requires the keys of its type", async (t) => {
  t.same(secretKind.strategy.setDefaults?.({ stringData: { a: "x" }, data: { b: "eQ==" } }), {
    type: "Opaque",
    data: { b: "eQ==", a: "eA==" },
  });
  t.same(errorsOf(secretKind, { type: "kubernetes.io/tls", data: { "tls.crt": "" } }), [
    "FieldValueRequired data[tls.key]",
  ]);
  t.same(errorsOf(secretKind, { type: "svc.io/tls", data: {} }).length, 2, "with either prefix");
});

t.test("leaseKind rejects invalid durations", async (t) => {
  t.same(errorsOf(leaseKind, { spec: { leaseDurationSeconds: 0 } }), ["FieldValueInvalid spec.leaseDurationSeconds"]);
});

const event: Event = {
  metadata: { name: "a", namespace: "default" },
  eventTime: "2026-01-01T00:00:00.000001Z",
  reportingController: "svc.io/svclet",
  reportingInstance: "shop-1",
  action: "Pulling",
  reason: "Pulling",
  type: "Normal",
  note: "pulling",
  regarding: { kind: "Pod", name: "a", namespace: "default" },
};

t.test("eventsV1EventKind requires all fields of events.svc.io/v1", async (t) => {
  t.same(errorsOf(eventsV1EventKind, event), []);
  t.same(
    errorsOf(eventsV1EventKind, { ...event, reason: "", action: "x".repeat(129), note: "x".repeat(1025), type: "Odd" }),
    ["FieldValueInvalid action", "FieldValueRequired reason", "FieldValueInvalid message", "FieldValueInvalid type"],
  );
  const changed = eventsV1EventKind.strategy.validateUpdate?.({ ...event, reason: "Other" }, event);
  t.same(
    changed?.map((e) => e.field),
    ["reason", "reason"],
  );
  const counted = { ...event, series: { count: 2, lastObservedTime: event.eventTime } };
  t.same(eventsV1EventKind.strategy.validateUpdate?.(counted, event), []);
});

t.test("eventsV1EventKind converts to eventKind and back", async (t) => {
  t.same(fromCoreEvent(toCoreEvent(event)), event);
  t.equal(toCoreEvent(event).message, "pulling");
});

t.test("eventKind accepts events without eventTime in the namespace of their object only", async (t) => {
  const old = { metadata: { namespace: "default" }, involvedObject: { namespace: "default" } };
  t.same(errorsOf(eventKind, old), []);
  t.same(errorsOf(eventKind, { ...old, involvedObject: { namespace: "other" } }), [
    "FieldValueInvalid involvedObject.namespace",
  ]);
});
