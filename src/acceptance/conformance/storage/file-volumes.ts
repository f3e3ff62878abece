/** ConfigMaps, Secrets and their projections as files: content, modes, users, paths, updates. */
import assert from "node:assert/strict";
import type { Json } from "../harness/api.ts";
import { type Behaviour, type Behaviours, containerOf, podOf, type TestNamespace } from "../harness/behaviour.ts";

type Source = "configMap" | "secret" | "projected configMap" | "projected secret";

interface VolumeOptions {
  readonly items?: readonly object[];
  readonly defaultMode?: number;
  readonly optional?: boolean;
}

/** A volume with the files of the ConfigMap or Secret `name`. */
function volumeOf(volume: string, source: Source, name: string, { defaultMode, ...rest }: VolumeOptions = {}) {
  const kind = source.replace("projected ", "");
  const mode = defaultMode === undefined ? {} : { defaultMode };
  if (source.startsWith("projected")) {
    return { name: volume, projected: { sources: [{ [kind]: { name, ...rest } }], ...mode } };
  }
  return { name: volume, [kind]: { [kind === "secret" ? "secretName" : "name"]: name, ...rest, ...mode } };
}

function sourceObject(source: Source, name: string, data: Readonly<Record<string, string>>) {
  if (source.endsWith("configMap")) return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData: data };
}

/** Prints mode and content of each file. */
const printFiles = (...paths: readonly string[]): string =>
  paths.map((path) => `busybox stat -L -c %A ${path} && cat ${path} && echo`).join(" && ");

interface Case {
  /** The user of the pod; root when absent. */
  readonly user?: number;
  readonly fsGroup?: number;
  readonly defaultMode?: number;
  /** Maps the key to `path/to/data-1`, with this mode unless it is 0. */
  readonly itemMode?: number;
  /** As `ls -l` writes it. */
  readonly mode?: string;
}

const DATA = { "data-1": "value-1", "data-2": "value-2" };

/** A pod reads the file with the expected mode. */
function testRead(source: Source, { user, fsGroup, defaultMode, itemMode, mode = "-rw-r--r--" }: Case = {}): Behaviour {
  return async (at) => {
    await at.create(sourceObject(source, "files", DATA));
    const item = { key: "data-1", path: "path/to/data-1", ...(itemMode ? { mode: itemMode } : {}) };
    const options = {
      ...(defaultMode === undefined ? {} : { defaultMode }),
      ...(itemMode === undefined ? {} : { items: [item] }),
    };
    const path = itemMode === undefined ? "/files/data-1" : "/files/path/to/data-1";
    const pod = podOf("reader", printFiles(path), {
      container: { volumeMounts: [{ name: "v", mountPath: "/files", readOnly: true }] },
      spec: {
        volumes: [volumeOf("v", source, "files", options)],
        securityContext: {
          ...(user === undefined ? {} : { runAsUser: user }),
          ...(fsGroup === undefined ? {} : { fsGroup }),
        },
      },
    });
    assert.equal(await at.outputOf(pod), `${mode}\nvalue-1\n`);
  };
}

function testTwoMounts(source: Source): Behaviour {
  return async (at) => {
    await at.create(sourceObject(source, "files", DATA));
    const pod = podOf("reader", printFiles("/one/data-1", "/two/data-1"), {
      container: {
        volumeMounts: ["one", "two"].map((name) => ({ name, mountPath: `/${name}`, readOnly: true })),
      },
      spec: { volumes: ["one", "two"].map((name) => volumeOf(name, source, "files")) },
    });
    assert.equal(await at.outputOf(pod), "-rw-r--r--\nvalue-1\n-rw-r--r--\nvalue-1\n");
  };
}

/** Prints the file each second, or `absent`. */
const printAgain = (path: string): string =>
  `while :; do busybox timeout 1 cat ${path} 2>/dev/null || echo absent; echo; sleep 1; done`;

const UPDATE_MS_MAX = 180_000;

function testUpdate(source: Source): Behaviour {
  return async (at) => {
    const object = sourceObject(source, "files", { "data-1": "value-1" });
    await at.create(object);
    const pod = podOf("reader", printAgain("/files/data-1"), {
      container: { volumeMounts: [{ name: "v", mountPath: "/files" }] },
      spec: { volumes: [volumeOf("v", source, "files")] },
    });
    await at.runPod(pod);
    await at.waitForLog("reader", /value-1/);
    await at.api.patch(at.pathOfObject(object), { data: { "data-1": "value-2" } });
    await at.waitForLog("reader", /value-2/, { timeoutMs: UPDATE_MS_MAX });
  };
}

/** Optional objects that are created, changed and deleted while the pod runs. */
function testOptionalUpdate(source: Source): Behaviour {
  return async (at) => {
    const names = ["create", "update", "delete"] as const;
    const objects = names.map((name) => sourceObject(source, name, { "data-1": "value-1" }));
    const [created, changed, deleted] = objects as [Json, Json, Json];
    await at.create(changed);
    await at.create(deleted);
    const pod = podOf("reader", "", {
      spec: {
        containers: names.map((name) => {
          const mounts = { volumeMounts: [{ name, mountPath: "/files", readOnly: true }] };
          return containerOf(printAgain("/files/data-1"), mounts, name);
        }),
        volumes: names.map((name) => volumeOf(name, source, name, { optional: true })),
      },
    });
    await at.runPod(pod);
    await at.waitForLog("reader", /absent/, { container: "create" });
    await at.waitForLog("reader", /value-1/, { container: "update" });
    await at.waitForLog("reader", /value-1/, { container: "delete" });
    await at.api.delete(at.pathOfObject(deleted));
    const next = sourceObject(source, "update", { "data-3": "value-3", "data-1": "value-2" });
    await at.api.patch(at.pathOfObject(changed), next);
    await at.create(created);
    const timeoutMs = UPDATE_MS_MAX;
    await Promise.all([
      at.waitForLog("reader", /value-1/, { container: "create", timeoutMs }),
      at.waitForLog("reader", /value-2/, { container: "update", timeoutMs }),
      at.waitForLog("reader", /absent/, { container: "delete", timeoutMs }),
    ]);
  };
}

/** Data changes until the object is immutable; labels change, and it can be deleted. */
function testImmutability(kind: "ConfigMap" | "Secret"): Behaviour {
  return async (at) => {
    const source = kind === "Secret" ? "secret" : "configMap";
    const object = sourceObject(source, "files", { "data-1": "value-1" });
    const path = at.pathOfObject(object);
    const dataOf = (value: string): object =>
      kind === "Secret" ? { stringData: { "data-1": value } } : { data: { "data-1": value } };
    await at.create(object);
    await at.api.patch(path, dataOf("value-2"));
    await at.api.patch(path, { immutable: true });
    await at.refused(422, at.api.patch(path, dataOf("value-3")), /field is immutable when `immutable` is set/);
    await at.refused(422, at.api.patch(path, { immutable: false }), /field is immutable when `immutable` is set/);
    await at.api.patch(path, { metadata: { labels: { label: "value" } } });
    const found = await at.api.get(path);
    const value = found.data["data-1"];
    assert.equal(kind === "Secret" ? Buffer.from(value, "base64").toString() : value, "value-2");
    assert.equal(found.metadata.labels.label, "value");
    await at.api.delete(path);
    await at.api.waitGone(path);
  };
}

/** A secret of the same name in another namespace is not that of the pod. */
async function readOwnSecret(at: TestNamespace): Promise<void> {
  const other = `${at.name}-other`;
  await at.api.post("/api/v1/namespaces", { metadata: { name: other } });
  try {
    await at.api.post(`/api/v1/namespaces/${other}/secrets`, {
      metadata: { name: "files" },
      stringData: { "data-1": "of another namespace" },
    });
    await testRead("secret")(at);
  } finally {
    await at.api.delete(`/api/v1/namespaces/${other}`);
  }
}

/** Fifty ConfigMaps in five pods, again and again. */
async function mountMany(at: TestNamespace): Promise<void> {
  const names = Array.from({ length: 50 }, (_, index) => `racey-${index}`);
  for (const name of names) await at.create(sourceObject("configMap", name, { "data-1": "value-1" }));
  const pod = (name: string) =>
    podOf(name, "while :; do sleep 3600; done", {
      container: { volumeMounts: names.map((name) => ({ name, mountPath: `/etc/${name}` })) },
      spec: {
        volumes: names.map((name) => {
          return volumeOf(name, "configMap", name, { items: [{ key: "data-1", path: "data-1" }] });
        }),
      },
    });
  for (let round = 0; round < 2; round++) {
    const pods = Array.from({ length: 5 }, (_, index) => `pod-${round}-${index}`);
    for (const name of pods) await at.create(pod(name));
    for (const name of pods) await at.waitReady(name, 240_000);
    const events = await at.api.list(`${at.path("events")}?fieldSelector=reason=FailedMount`);
    assert.deepEqual(
      events.map(({ message }) => message),
      [],
    );
    for (const name of pods) await at.api.delete(at.path(`pods/${name}`));
  }
}

const user = 1000;
const owner = { user, fsGroup: 1001, defaultMode: 0o440, mode: "-r--r-----" };
const readOnly = { defaultMode: 0o400, mode: "-r--------" };
const mapped = { itemMode: 0 };
const mappedReadOnly = { itemMode: 0o400, mode: "-r--------" };

/** Text and bytes that are no text, in two volumes beside a Secret. */
async function readBinary(at: TestNamespace): Promise<void> {
  const bytes = Buffer.from([0xde, 0xca, 0xfe, 0xba, 0xd0, 0xfe, 0xff]);
  const object = sourceObject("configMap", "files", { "data-1": "value-1" });
  await at.create({ ...object, binaryData: { "dump.bin": bytes.toString("base64") } });
  const pod = podOf("reader", "cat /files/data-1; echo; busybox hexdump -e '1/1 \"%02x\"' /files/dump.bin; echo", {
    container: { volumeMounts: [{ name: "v", mountPath: "/files" }] },
    spec: { volumes: [volumeOf("v", "configMap", "files")] },
  });
  assert.equal(await at.outputOf(pod), `value-1\n${bytes.toString("hex")}\n`);
}

async function mountBoth(at: TestNamespace): Promise<void> {
  await at.create(sourceObject("secret", "files", { "data-1": "value-1" }));
  await at.create(sourceObject("configMap", "files", { "data-2": "value-2" }));
  const pod = podOf("reader", "cat /etc/secret-volume/data-1 /etc/configmap-volume/data-2", {
    container: {
      volumeMounts: [
        { name: "secret-volume", mountPath: "/etc/secret-volume", readOnly: true },
        { name: "configmap-volume", mountPath: "/etc/configmap-volume" },
      ],
    },
    spec: {
      volumes: [volumeOf("secret-volume", "secret", "files"), volumeOf("configmap-volume", "configMap", "files")],
    },
  });
  assert.equal(await at.outputOf(pod), "value-1value-2");
}

export const fileVolumes: Behaviours = {
  "ConfigMap binary data should be reflected in volume": readBinary,
  "ConfigMap should be consumable from pods in volume": testRead("configMap"),
  "ConfigMap updates should be reflected in volume": testUpdate("configMap"),
  "Secrets should be consumable from pods in volume as non-root with defaultMode and fsGroup set": testRead(
    "secret",
    owner,
  ),
  "EmptyDir wrapper volumes should not conflict": mountBoth,
  "ConfigMap should be consumable from pods in volume as non-root": testRead("configMap", { user }),
  "ConfigMap should be consumable from pods in volume with defaultMode set": testRead("configMap", readOnly),
  "ConfigMap should be consumable from pods in volume with mappings": testRead("configMap", mapped),
  "ConfigMap should be consumable from pods in volume with mappings and Item mode set": testRead(
    "configMap",
    mappedReadOnly,
  ),
  "ConfigMap should be consumable from pods in volume with mappings as non-root": testRead("configMap", {
    ...mapped,
    user,
  }),
  "ConfigMap should be consumable in multiple volumes in the same pod": testTwoMounts("configMap"),
  "ConfigMap optional updates should be reflected in volume": testOptionalUpdate("configMap"),
  "ConfigMap should be immutable if `immutable` field is set": testImmutability("ConfigMap"),
  "Secrets should be consumable from pods in volume": testRead("secret"),
  "Secrets should be consumable from pods in volume with defaultMode set": testRead("secret", readOnly),
  "Secrets should be consumable from pods in volume with mappings": testRead("secret", mapped),
  "Secrets should be consumable from pods in volume with mappings and Item Mode set": testRead(
    "secret",
    mappedReadOnly,
  ),
  "Secrets should be consumable in multiple volumes in a pod": testTwoMounts("secret"),
  "Secrets optional updates should be reflected in volume": testOptionalUpdate("secret"),
  "Secrets should be immutable if `immutable` field is set": testImmutability("Secret"),
  "Secrets should be able to mount in a volume regardless of a different secret existing with same name in different namespace":
    readOwnSecret,
  "Projected configMap should be consumable from pods in volume": testRead("projected configMap"),
  "Projected configMap should be consumable from pods in volume as non-root": testRead("projected configMap", { user }),
  "Projected configMap should be consumable from pods in volume with defaultMode set": testRead(
    "projected configMap",
    readOnly,
  ),
  "Projected configMap should be consumable from pods in volume with mappings": testRead("projected configMap", mapped),
  "Projected configMap should be consumable from pods in volume with mappings and Item mode set": testRead(
    "projected configMap",
    mappedReadOnly,
  ),
  "Projected configMap should be consumable from pods in volume with mappings as non-root": testRead(
    "projected configMap",
    { ...mapped, user },
  ),
  "Projected configMap should be consumable in multiple volumes in the same pod": testTwoMounts("projected configMap"),
  "Projected configMap updates should be reflected in volume": testUpdate("projected configMap"),
  "Projected configMap optional updates should be reflected in volume": testOptionalUpdate("projected configMap"),
  "Projected secret should be consumable from pods in volume": testRead("projected secret"),
  "Projected secret should be consumable from pods in volume as non-root with defaultMode and fsGroup set": testRead(
    "projected secret",
    owner,
  ),
  "Projected secret should be consumable from pods in volume with defaultMode set": testRead(
    "projected secret",
    readOnly,
  ),
  "Projected secret should be consumable from pods in volume with mappings": testRead("projected secret", mapped),
  "Projected secret should be consumable from pods in volume with mappings and Item Mode set": testRead(
    "projected secret",
    mappedReadOnly,
  ),
  "Projected secret should be consumable in multiple volumes in a pod": testTwoMounts("projected secret"),
  "Projected secret optional updates should be reflected in volume": testOptionalUpdate("projected secret"),
  "EmptyDir wrapper volumes should not cause race condition when used for configmaps": mountMany,
};
