/** Fields of the pod and its containers as files, by downwardAPI and projected volumes. */
import assert from "node:assert/strict";
import type { Json } from "../harness/api.ts";
import { type Behaviour, type Behaviours, podOf, type TestNamespace } from "../harness/behaviour.ts";

type Form = "downwardAPI" | "projected";

const resources = { requests: { cpu: "250m", memory: "32Mi" }, limits: { cpu: "1250m", memory: "64Mi" } };
const podName = { path: "podname", fieldRef: { fieldPath: "metadata.name" } };
const resourceItem = (resource: string) => ({ path: "value", resourceFieldRef: { containerName: "c", resource } });

function volumeOf(form: Form, items: readonly object[], defaultMode?: number) {
  const mode = defaultMode === undefined ? {} : { defaultMode };
  const volume =
    form === "projected"
      ? { projected: { sources: [{ downwardAPI: { items } }], ...mode } }
      : { downwardAPI: { items, ...mode } };
  return { name: "podinfo", ...volume };
}

function readerOf(name: string, script: string, volume: object, more: object = {}, metadata: object = {}) {
  return podOf(name, script, {
    ...metadata,
    container: { volumeMounts: [{ name: "podinfo", mountPath: "/etc/podinfo" }], ...more },
    spec: { volumes: [volume] },
  });
}

function testResource(form: Form, name: string, value: string): Behaviour {
  return async (at) => {
    const volume = volumeOf(form, [resourceItem(name)]);
    assert.equal(await at.outputOf(readerOf("reader", "cat /etc/podinfo/value", volume, { resources })), value);
  };
}

/** Without a limit the file has what the node can allocate. */
function testAllocatable(form: Form, name: "cpu" | "memory"): Behaviour {
  return async (at) => {
    const volume = volumeOf(form, [resourceItem(`limits.${name}`)]);
    const output = await at.outputOf(readerOf("reader", "cat /etc/podinfo/value", volume));
    const { allocatable } = (await at.node()).status;
    assert.equal(Number(output), name === "cpu" ? Math.ceil(coresOf(allocatable.cpu)) : bytesOf(allocatable.memory));
  };
}

export function coresOf(quantity: string): number {
  return quantity.endsWith("m") ? Number(quantity.slice(0, -1)) / 1000 : Number(quantity);
}

export function bytesOf(quantity: string): number {
  const [, number, unit = ""] = /^(\d+)(Ki|Mi|Gi)?$/.exec(quantity) ?? [];
  return Number(number) * 1024 ** ["", "Ki", "Mi", "Gi"].indexOf(unit);
}

function testPodName(form: Form): Behaviour {
  return async (at) => {
    const volume = volumeOf(form, [podName]);
    assert.equal(await at.outputOf(readerOf("named", "cat /etc/podinfo/podname", volume)), "named");
  };
}

const printMode = "busybox stat -L -c %A /etc/podinfo/podname && cat /etc/podinfo/podname";

function testFileMode(form: Form, by: "default" | "item"): Behaviour {
  return async (at) => {
    const volume = by === "default" ? volumeOf(form, [podName], 0o400) : volumeOf(form, [{ ...podName, mode: 0o400 }]);
    assert.equal(await at.outputOf(readerOf("named", printMode, volume)), "-r--------\nnamed");
  };
}

function testMetadataUpdate(form: Form, field: "labels" | "annotations"): Behaviour {
  return async (at) => {
    const volume = volumeOf(form, [{ path: field, fieldRef: { fieldPath: `metadata.${field}` } }]);
    const script = `while :; do cat /etc/podinfo/${field}; echo; sleep 1; done`;
    await at.runPod(readerOf("reader", script, volume, {}, { [field]: { key1: "value1" } }));
    await at.waitForLog("reader", /key1="value1"\n/);
    await at.api.patch(at.path("pods/reader"), { metadata: { [field]: { key3: "value3" } } });
    await at.waitForLog("reader", /key3="value3"\n/, { timeoutMs: 180_000 });
  };
}

/** One volume with a secret, a ConfigMap and fields of the pod. */
async function projectAll(at: TestNamespace): Promise<void> {
  const metadata = { name: "files" };
  await at.create({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { "configmap-data": "value-1" } });
  await at.create({ apiVersion: "v1", kind: "Secret", metadata, stringData: { "secret-data": "value-2" } });
  const item = (path: string, resource: string): Json => ({ path, resourceFieldRef: { containerName: "c", resource } });
  const volume = {
    name: "podinfo",
    projected: {
      sources: [
        { secret: { name: "files" } },
        { configMap: { name: "files" } },
        {
          downwardAPI: {
            items: [
              podName,
              item("cpu_limit", "limits.cpu"),
              item("cpu_request", "requests.cpu"),
              item("memory_limit", "limits.memory"),
              item("memory_request", "requests.memory"),
            ],
          },
        },
      ],
    },
  };
  const names = [
    "podname",
    "configmap-data",
    "secret-data",
    "cpu_limit",
    "cpu_request",
    "memory_limit",
    "memory_request",
  ];
  const script = names.map((name) => `cat /etc/podinfo/${name}; echo`).join("; ");
  const output = await at.outputOf(readerOf("named", script, volume, { resources }));
  assert.deepEqual(output.trim().split("\n"), ["named", "value-1", "value-2", "2", "1", "67108864", "33554432"]);
}

export const downwardVolumes: Behaviours = {
  "Downward API volume should provide container's cpu limit": testResource("downwardAPI", "limits.cpu", "2"),
  "Downward API volume should provide container's cpu request": testResource("downwardAPI", "requests.cpu", "1"),
  "Downward API volume should provide container's memory limit": testResource(
    "downwardAPI",
    "limits.memory",
    "67108864",
  ),
  "Downward API volume should provide container's memory request": testResource(
    "downwardAPI",
    "requests.memory",
    "33554432",
  ),
  "Downward API volume should provide node allocatable (cpu) as default cpu limit if the limit is not set":
    testAllocatable("downwardAPI", "cpu"),
  "Downward API volume should provide node allocatable (memory) as default memory limit if the limit is not set":
    testAllocatable("downwardAPI", "memory"),
  "Downward API volume should provide podname only": testPodName("downwardAPI"),
  "Downward API volume should set DefaultMode on files": testFileMode("downwardAPI", "default"),
  "Downward API volume should set mode on item file": testFileMode("downwardAPI", "item"),
  "Downward API volume should update labels on modification": testMetadataUpdate("downwardAPI", "labels"),
  "Downward API volume should update annotations on modification": testMetadataUpdate("downwardAPI", "annotations"),
  "Projected downwardAPI should provide container's cpu limit": testResource("projected", "limits.cpu", "2"),
  "Projected downwardAPI should provide container's cpu request": testResource("projected", "requests.cpu", "1"),
  "Projected downwardAPI should provide container's memory limit": testResource(
    "projected",
    "limits.memory",
    "67108864",
  ),
  "Projected downwardAPI should provide container's memory request": testResource(
    "projected",
    "requests.memory",
    "33554432",
  ),
  "Projected downwardAPI should provide node allocatable (cpu) as default cpu limit if the limit is not set":
    testAllocatable("projected", "cpu"),
  "Projected downwardAPI should provide node allocatable (memory) as default memory limit if the limit is not set":
    testAllocatable("projected", "memory"),
  "Projected downwardAPI should provide podname only": testPodName("projected"),
  "Projected downwardAPI should set DefaultMode on files": testFileMode("projected", "default"),
  "Projected downwardAPI should set mode on item file": testFileMode("projected", "item"),
  "Projected downwardAPI should update annotations on modification": testMetadataUpdate("projected", "annotations"),
  "Projected downwardAPI should update labels on modification": testMetadataUpdate("projected", "labels"),
  "Projected combined should project all components that make up the projection API": projectAll,
};
