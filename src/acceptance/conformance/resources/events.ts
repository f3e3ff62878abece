/** Events of both API groups, and LimitRanges, PriorityClasses, Endpoints and volumes with their claims. */
import assert from "node:assert/strict";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { testOperations } from "../harness/operations.ts";

const time = "2026-01-01T00:00:00.000000Z";
const seriesOf = (count: number, name: string) => ({ series: { count, [name]: "2026-01-01T00:00:09.000000Z" } });

const involved = (at: TestNamespace) => ({ kind: "Pod", namespace: at.name, name: "nothing", apiVersion: "v1" });

const coreEvents = testOperations({
  make: (at, index) => ({
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `event-${index}` },
    type: "Normal",
    reason: "Test",
    message: "This is a test event",
    involvedObject: involved(at),
  }),
  change: {
    patch: { message: "This is a patched event" },
    update: {
      ...seriesOf(100, "lastObservedTime"),
      reportingComponent: "example.com/e2e",
      reportingInstance: "e2e",
      action: "Test",
      eventTime: time,
    },
  },
});

const newEvents = testOperations({
  make: (at, index) => ({
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: `event-${index}` },
    type: "Normal",
    reason: "Test",
    action: "Test",
    note: "This is a test event",
    eventTime: time,
    reportingController: "example.com/e2e",
    reportingInstance: "e2e",
    regarding: involved(at),
  }),
  // The note of an event of this group does not change.
  change: { patch: seriesOf(2, "lastObservedTime"), update: seriesOf(100, "lastObservedTime") },
});

const limitRangeOf = (name: string, cpu: string) => ({
  apiVersion: "v1",
  kind: "LimitRange",
  metadata: { name },
  spec: {
    limits: [
      {
        type: "Container",
        min: { cpu: "50m", memory: "100Mi" },
        max: { cpu: "500m", memory: "500Mi" },
        default: { cpu, memory: "500Mi" },
        defaultRequest: { cpu: "100m", memory: "200Mi" },
      },
    ],
  },
});

async function applyLimits(at: TestNamespace): Promise<void> {
  const range = limitRangeOf("limits", "500m");
  using watch = await at.api.watch(at.path("limitranges"));
  await at.create(range);
  await watch.wait("ADDED", ({ metadata }) => metadata.name === "limits");
  assert.deepEqual((await at.get(range)).spec, range.spec);
  const resourcesOf = async (name: string, resources?: object): Promise<Json> => {
    const pod = podOf(name, PAUSE, resources === undefined ? {} : { container: { resources } });
    return (await at.create(pod)).spec.containers[0].resources;
  };
  assert.deepEqual(await resourcesOf("none"), {
    requests: { cpu: "100m", memory: "200Mi" },
    limits: { cpu: "500m", memory: "500Mi" },
  });
  const part = { requests: { memory: "150Mi" }, limits: { cpu: "300m" } };
  assert.deepEqual(await resourcesOf("part", part), {
    requests: { cpu: "300m", memory: "150Mi" },
    limits: { cpu: "300m", memory: "500Mi" },
  });
  const tooSmall = { requests: { cpu: "10m", memory: "100Mi" } };
  await at.refused(403, resourcesOf("small", tooSmall), /minimum cpu usage per Container is 50m/);
  const tooLarge = { requests: { cpu: "600m" }, limits: { cpu: "600m" } };
  await at.refused(403, resourcesOf("large", tooLarge), /maximum cpu usage per Container is 500m/);
  await at.api.update(at.pathOfObject(range), ({ spec }) => {
    spec.limits[0].min = { cpu: "9m", memory: "49Mi" };
  });
  await watch.wait("MODIFIED", ({ spec }) => spec.limits[0].min.cpu === "9m");
  assert.equal((await resourcesOf("small", tooSmall)).requests.cpu, "10m");
  await at.api.delete(at.pathOfObject(range));
  await watch.wait("DELETED");
  assert.deepEqual(await resourcesOf("free", { requests: { cpu: "600m" } }), { requests: { cpu: "600m" } });
}

async function collectLimits(at: TestNamespace): Promise<void> {
  const other = `${at.name}-other`;
  await at.api.post("/api/v1/namespaces", { metadata: { name: other } });
  try {
    const labels = { of: at.name };
    const range = limitRangeOf("limits", "500m");
    const labelled = { ...range, metadata: { name: "limits", labels } };
    await at.create(labelled);
    const path = `/api/v1/namespaces/${other}/limitranges`;
    await at.api.post(path, { ...labelled, metadata: { name: "limits", labels } });
    const selector = `?labelSelector=of%3D${at.name}`;
    assert.equal((await at.api.list(`/api/v1/limitranges${selector}`)).length, 2);
    const patch = { metadata: { labels: { patched: "true" } }, spec: { limits: limitRangeOf("", "200m").spec.limits } };
    const patched = await at.api.patch(at.pathOfObject(range), patch);
    assert.equal(patched.spec.limits[0].default.cpu, "200m");
    assert.equal(patched.metadata.labels.patched, "true");
    await at.api.delete(`${at.path("limitranges")}?labelSelector=patched%3Dtrue`);
    await at.api.waitGone(at.pathOfObject(range));
    const left = await at.api.list(`/api/v1/limitranges${selector}`);
    assert.deepEqual(
      left.map(({ metadata }) => metadata.namespace),
      [other],
    );
  } finally {
    await at.api.delete(`/api/v1/namespaces/${other}`);
  }
}

async function changePriorityClasses(at: TestNamespace): Promise<void> {
  const classes = [1, 2].map((index) => ({
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: `${at.name}-p${index}`, labels: { of: at.name } },
    value: index,
  }));
  for (const each of classes) await at.create(each);
  const collection = `/apis/scheduling.k8s.io/v1/priorityclasses?labelSelector=of%3D${at.name}`;
  assert.deepEqual(
    (await at.api.list(collection)).map(({ value }) => value),
    [1, 2],
  );
  for (const each of classes) {
    const path = at.pathOfObject(each);
    const found = await at.api.get(path);
    const immutable = /value: Forbidden: may not be changed in an update/;
    await at.refused(422, at.api.patch(path, { value: each.value * 10 }), immutable);
    await at.refused(422, at.api.put(path, { ...found, value: each.value * 10 }), immutable);
    assert.equal((await at.api.patch(path, { description: "patched" })).description, "patched");
    const updated = await at.api.update(path, (object) => {
      object.description = "updated";
    });
    assert.equal(updated.description, "updated");
    const { description, value } = await at.api.get(path);
    assert.deepEqual([description, value], ["updated", each.value]);
  }
  await at.api.delete(collection);
  assert.deepEqual(await at.api.list(collection), []);
}

async function liveEndpoint(at: TestNamespace): Promise<void> {
  const labels = { "test-endpoint-static": "true" };
  const selector = "?labelSelector=test-endpoint-static%3Dtrue";
  using watch = await at.api.watch(at.path("endpoints") + selector);
  const subsets = [{ addresses: [{ ip: "10.0.0.24" }], ports: [{ name: "http", port: 80, protocol: "TCP" }] }];
  await at.create({ apiVersion: "v1", kind: "Endpoints", metadata: { name: "live", labels }, subsets });
  await watch.wait("ADDED");
  assert.equal((await at.api.list(`/api/v1/endpoints${selector}`)).length, 1);
  const path = at.path("endpoints/live");
  await at.api.update(path, ({ metadata }) => {
    metadata.labels["test-service"] = "updated";
  });
  await watch.wait("MODIFIED", ({ metadata }) => metadata.labels["test-service"] === "updated");
  const patch = [{ addresses: [{ ip: "10.0.0.25" }], ports: [{ name: "http-test", port: 8080, protocol: "TCP" }] }];
  await at.api.patch(path, { metadata: { labels: { "test-service": "patched" } }, subsets: patch });
  const seen = await watch.wait("MODIFIED", ({ metadata }) => metadata.labels["test-service"] === "patched");
  assert.deepEqual(seen.subsets, patch);
  assert.deepEqual((await at.api.get(path)).subsets, patch);
  await at.api.delete(at.path("endpoints") + selector);
  await watch.wait("DELETED");
}

const capacity = { storage: "2Gi" };
const classOf = (at: TestNamespace): string => `${at.name}-manual`;

const volumeOf = (at: TestNamespace, index: number) => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: `${at.name}-${index}` },
  spec: {
    capacity,
    accessModes: ["ReadWriteOnce"],
    storageClassName: classOf(at),
    csi: { driver: "e2e-driver.example.com", volumeHandle: `handle-${index}` },
  },
});

const claimOf = (at: TestNamespace, index: number) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: `claim-${index}` },
  // No volume has the class, so that the claim is not bound and can be deleted.
  spec: {
    accessModes: ["ReadWriteOnce"],
    storageClassName: `${classOf(at)}-absent`,
    resources: { requests: capacity },
  },
});

async function liveVolumes(at: TestNamespace): Promise<void> {
  await testOperations({ make: volumeOf })(at);
  await testOperations({ make: claimOf })(at);
}

async function changeVolumeStatus(at: TestNamespace): Promise<void> {
  const [volume, claim] = [volumeOf(at, 0), claimOf(at, 0)];
  const labels = { of: at.name };
  await at.create({ ...volume, metadata: { ...volume.metadata, labels } });
  await at.create(claim);
  assert.equal((await at.api.list(`/api/v1/persistentvolumes?labelSelector=of%3D${at.name}`)).length, 1);
  assert.equal((await at.api.list(at.path("persistentvolumeclaims"))).length, 1);
  const [ofVolume, ofClaim] = [volume, claim].map((each) => `${at.pathOfObject(each)}/status`) as [string, string];
  await at.wait(ofVolume, "a phase", ({ status }) => status.phase === "Available");
  await at.wait(ofClaim, "a phase", ({ status }) => status.phase === "Pending");
  const condition = (type: string) => ({ type, status: "True", reason: "E2E", message: `Set by ${type}` });
  await at.api.patch(ofClaim, { status: { conditions: [condition("StatusPatched")] } });
  assert.equal(conditionOf((await at.api.get(ofClaim)).status, "StatusPatched").reason, "E2E");
  await at.api.patch(ofVolume, { status: { message: "StatusPatched", reason: "E2E" } });
  assert.partialDeepStrictEqual((await at.api.get(ofVolume)).status, { message: "StatusPatched", reason: "E2E" });
  await at.api.update(ofClaim, ({ status }) => status.conditions.push(condition("StatusUpdated")));
  assert.equal(conditionOf((await at.api.get(ofClaim)).status, "StatusUpdated").reason, "E2E");
  await at.api.update(ofVolume, ({ status }) => Object.assign(status, { message: "StatusUpdated", reason: "E2E 2" }));
  assert.partialDeepStrictEqual((await at.api.get(ofVolume)).status, { message: "StatusUpdated", reason: "E2E 2" });
  await at.api.delete(at.pathOfObject(claim));
  await at.api.delete(at.pathOfObject(volume));
}

export const events: Behaviours = {
  "Events API should delete a collection of events": newEvents,
  "Events API should ensure that an event can be fetched, patched, deleted, and listed": newEvents,
  "Events should delete a collection of events": coreEvents,
  "Events should manage the lifecycle of an event": coreEvents,
  "LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied.": applyLimits,
  "LimitRange should list, patch and delete a LimitRange by collection": collectLimits,
  "SchedulerPreemption PriorityClass endpoints verify PriorityClass endpoints can be operated with different HTTP methods":
    changePriorityClasses,
  "Services should test the lifecycle of an Endpoint": liveEndpoint,
  "PersistentVolumes CSI Conformance should run through the lifecycle of a PV and a PVC": liveVolumes,
  "PersistentVolumes CSI Conformance should apply changes to a pv/pvc status": changeVolumeStatus,
};
