/** Workloads: their scale and status subresources, collections, adoption, and pods that serve. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import { exampleImage } from "../../cluster/example-image.ts";
import type { Json } from "../harness/api.ts";
import {
  type Behaviour,
  type Behaviours,
  conditionOf,
  type KubeObject,
  PAUSE,
  podOf,
  type TestNamespace,
  templateOf,
} from "../harness/behaviour.ts";
import { serverSpec } from "../harness/node-program.ts";

type Kind = "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController";

const labelsOf = (name: string) => ({ app: name });

export function workloadOf(kind: Kind, name: string, replicas = 1, more: object = {}) {
  const labels = labelsOf(name);
  return {
    apiVersion: kind === "ReplicationController" ? "v1" : "apps/v1",
    kind,
    metadata: { name, labels },
    spec: {
      ...(kind === "DaemonSet" ? {} : { replicas }),
      selector: kind === "ReplicationController" ? labels : { matchLabels: labels },
      ...(kind === "StatefulSet" ? { serviceName: name } : {}),
      template: templateOf(labels, PAUSE),
      ...more,
    },
  };
}

function readyOf({ kind, status = {} }: Json): number {
  return (kind === "DaemonSet" ? status.numberReady : status.readyReplicas) ?? 0;
}

export function waitReplicas(at: TestNamespace, object: KubeObject, count: number): Promise<Json> {
  return at.wait(at.pathOfObject(object), `${count} ready pods`, (found) => {
    const { generation } = found.metadata;
    return readyOf(found) === count && (found.status.observedGeneration ?? 0) >= (generation ?? 0);
  });
}

const podsOf = (at: TestNamespace, name: string): Promise<readonly Json[]> =>
  at.api.list(`${at.path("pods")}?labelSelector=app%3D${name}`);

/** Reads, updates and patches the scale; pods follow. */
export function testScale(kind: Kind): Behaviour {
  return async (at) => {
    const object = workloadOf(kind, "scaled");
    await at.create(object);
    await waitReplicas(at, object, 1);
    const path = `${at.pathOfObject(object)}/scale`;
    const scale = await at.api.get(path);
    assert.equal(scale.kind, "Scale");
    assert.equal(scale.spec.replicas, 1);
    assert.equal(scale.status.replicas, 1);
    await at.api.update(path, ({ spec }) => {
      spec.replicas = 2;
    });
    assert.equal((await at.get(object)).spec.replicas, 2);
    await waitReplicas(at, object, 2);
    await at.api.patch(path, { spec: { replicas: 3 } });
    assert.equal((await at.api.get(path)).spec.replicas, 3);
    await waitReplicas(at, object, 3);
  };
}

/** Status conditions are replaced and patched, and read again. */
export function testStatus(kind: Kind): Behaviour {
  return async (at) => {
    const object = workloadOf(kind, "stated");
    await at.create(object);
    await waitReplicas(at, object, 1);
    const path = `${at.pathOfObject(object)}/status`;
    assert.equal(readyOf(await at.api.get(path)), 1);
    using watch = await at.api.watch(`${at.pathOf(object.apiVersion, kind)}?labelSelector=app%3Dstated`);
    const condition = (type: string) => ({ type, status: "True", reason: "E2E", message: `Set by ${type}` });
    const has = async (type: string): Promise<void> => {
      const seen = await watch.wait("MODIFIED", ({ status }) => conditionOf(status, type) !== undefined);
      assert.partialDeepStrictEqual(conditionOf(seen.status, type), condition(type));
    };
    const updated = await at.api.update(path, ({ status }) => {
      status.conditions = [...(status.conditions ?? []), condition("StatusUpdate")];
    });
    assert.ok(conditionOf(updated.status, "StatusUpdate"));
    await has("StatusUpdate");
    const patched = await at.api.patch(path, { status: { conditions: [condition("StatusPatched")] } });
    assert.ok(conditionOf(patched.status, "StatusPatched"));
    await has("StatusPatched");
  };
}

/** A collection is listed, in all namespaces too, and deleted with its pods. */
function testCollection(kind: Kind): Behaviour {
  return async (at) => {
    const labels = { ...labelsOf("listed"), of: at.name };
    const object = workloadOf(kind, "listed", 2);
    await at.create({ ...object, metadata: { ...object.metadata, labels } });
    await waitReplicas(at, object, kind === "DaemonSet" ? 1 : 2);
    const collection = at.pathOf(object.apiVersion, kind);
    const selector = `?labelSelector=of%3D${at.name}`;
    assert.equal((await at.api.list(collection + selector)).length, 1);
    const everywhere = collection.replace(`/namespaces/${at.name}`, "");
    assert.equal((await at.api.list(everywhere + selector)).length, 1);
    const patched = await at.api.patch(
      at.pathOfObject(object),
      {
        metadata: { labels: { patched: "true" } },
        spec: { template: { spec: { terminationGracePeriodSeconds: 1 } } },
      },
      "strategic",
    );
    assert.equal(patched.metadata.labels.patched, "true");
    assert.equal((await at.get(object)).spec.template.spec.terminationGracePeriodSeconds, 1);
    await at.api.delete(collection + selector);
    assert.equal((await at.api.list(collection + selector)).length, 0);
    await until("the end of the pods", async () => (await podsOf(at, "listed")).length === 0);
  };
}

/** Every pod answers at its own address by HTTP, TCP and UDP. */
function testServing(kind: Kind): Behaviour {
  return async (at) => {
    const object = workloadOf(kind, "serving", 2, {
      template: { metadata: { labels: labelsOf("serving") }, spec: serverSpec() },
    });
    await at.create(object);
    await at.runPod(podOf("client", PAUSE));
    await waitReplicas(at, object, 2);
    const found = await podsOf(at, "serving");
    assert.equal(found.length, 2);
    for (const { metadata, status } of found) {
      const proxied = await at.api.send(`GET ${at.path(`pods/${metadata.name}:8080/proxy/hostname`)}`);
      assert.equal(proxied.text, metadata.name);
      const ip = status.podIP;
      assert.equal(await at.exec("client", `wget -q -O - http://${ip}:8080/hostname`), metadata.name);
      assert.equal(await at.exec("client", `nc ${ip} 8082 </dev/null`), `${metadata.name}\n`);
      const server = found[0].status.podIP;
      const dialled = await at.exec("client", `wget -q -O - 'http://${server}:8080/dial?host=${ip}&port=8081'`);
      assert.equal(dialled, `${metadata.name}\n`);
    }
  };
}

async function adopt(at: TestNamespace): Promise<void> {
  await at.create(podOf("adopted", PAUSE, { labels: labelsOf("adopter"), spec: { restartPolicy: "Always" } }));
  const object = workloadOf("ReplicaSet", "adopter");
  const { metadata } = await at.create(object);
  const ownerOf = (pod: Json): string | undefined => pod.metadata.ownerReferences?.[0]?.uid;
  await at.waitForPod("adopted", "an owner", (pod) => ownerOf(pod) === metadata.uid);
  await at.api.patch(at.path("pods/adopted"), { metadata: { labels: { app: "released" } } });
  await at.waitForPod("adopted", "no owner", (pod) => ownerOf(pod) === undefined);
  await until("a replacement", async () => {
    const found = await podsOf(at, "adopter");
    return found.length === 1 && ownerOf(found[0]) === metadata.uid;
  });
}

async function replaceAndPatch(at: TestNamespace): Promise<void> {
  const object = workloadOf("ReplicaSet", "replaced");
  const path = at.pathOfObject(object);
  await at.create(object);
  await waitReplicas(at, object, 1);
  await at.api.update(path, ({ spec }) => {
    spec.replicas = 2;
  });
  await waitReplicas(at, object, 2);
  const patch = {
    metadata: { labels: { patched: "true" } },
    spec: {
      replicas: 3,
      template: { spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "c", image: exampleImage }] } },
    },
  };
  await at.api.patch(path, patch, "strategic");
  const found = await waitReplicas(at, object, 3);
  assert.equal(found.metadata.labels.patched, "true");
  assert.equal(found.spec.template.spec.terminationGracePeriodSeconds, 1);
}

/** The events of a watch during creation, patches, scaling, status changes, and deletion. */
function testLifecycle(kind: "Deployment" | "ReplicationController"): Behaviour {
  return async (at) => {
    const object = workloadOf(kind, "living");
    const path = at.pathOfObject(object);
    const collection = at.pathOf(object.apiVersion, kind);
    using watch = await at.api.watch(`${collection}?labelSelector=app%3Dliving`);
    await at.create(object);
    await watch.wait("ADDED");
    await watch.wait("MODIFIED", (found) => readyOf(found) === 1);
    const patch = {
      metadata: { labels: { patched: "true" } },
      spec: { replicas: 2, template: { spec: { terminationGracePeriodSeconds: 1 } } },
    };
    await at.api.patch(path, patch, "strategic");
    await watch.wait("MODIFIED", ({ metadata }) => metadata.labels.patched === "true");
    await watch.wait("MODIFIED", (found) => readyOf(found) === 2);
    await at.api.get(`${path}/scale`);
    await at.api.patch(`${path}/scale`, { spec: { replicas: 1 } });
    await watch.wait("MODIFIED", ({ spec }) => spec.replicas === 1);
    await waitReplicas(at, object, 1);
    await at.api.get(`${path}/status`);
    const conditions = [{ type: "StatusPatched", status: "True" }];
    await at.api.patch(`${path}/status`, { status: { conditions } });
    await watch.wait("MODIFIED", ({ status }) => conditionOf(status, "StatusPatched")?.status === "True");
    await at.api.update(path, ({ metadata }) => {
      metadata.labels.updated = "true";
    });
    await watch.wait("MODIFIED", ({ metadata }) => metadata.labels.updated === "true");
    const everywhere = collection.replace(`/namespaces/${at.name}`, "");
    const found = await at.api.list(`${everywhere}?labelSelector=app%3Dliving,patched%3Dtrue`);
    assert.ok(found.some(({ metadata }) => metadata.namespace === at.name));
    await at.api.delete(`${collection}?labelSelector=app%3Dliving`);
    await watch.wait("DELETED");
  };
}

export const workloads: Behaviours = {
  "Daemon set should list and delete a collection of DaemonSets": testCollection("DaemonSet"),
  "Daemon set should verify changes to a daemon set status": testStatus("DaemonSet"),
  "Deployment should run the lifecycle of a Deployment": testLifecycle("Deployment"),
  "ReplicaSet Replace and Patch tests": replaceAndPatch,
  "ReplicaSet Replicaset should have a working scale subresource": testScale("ReplicaSet"),
  "ReplicaSet should adopt matching pods on creation and release no longer matching pods": adopt,
  "ReplicaSet should list and delete a collection of ReplicaSets": testCollection("ReplicaSet"),
  "ReplicaSet should serve a basic image on each replica with a public image": testServing("ReplicaSet"),
  "ReplicaSet should validate Replicaset Status endpoints": testStatus("ReplicaSet"),
  "ReplicationController should get and update a ReplicationController scale": testScale("ReplicationController"),
  "ReplicationController should serve a basic image on each replica with a public image":
    testServing("ReplicationController"),
  "ReplicationController should test the lifecycle of a ReplicationController": testLifecycle("ReplicationController"),
  "StatefulSet Basic StatefulSet functionality should have a working scale subresource": testScale("StatefulSet"),
  "StatefulSet Basic StatefulSet functionality should list, patch and delete a collection of StatefulSets":
    testCollection("StatefulSet"),
  "StatefulSet Basic StatefulSet functionality should validate Statefulset Status endpoints": testStatus("StatefulSet"),
};
