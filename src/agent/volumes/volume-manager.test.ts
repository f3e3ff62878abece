import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { mountAll } from "../../testing/agent/mount-all.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { ClaimSource } from "./claims.ts";
import type { Mounter } from "./mount/mounter.ts";
import { TokenManager } from "./projected/token-manager.ts";
import { type MountError, VolumeManager } from "./volume-manager.ts";

const pod: Pod = mountAll({
  metadata: { name: "web", namespace: "default", uid: "uid-1" },
  spec: {
    containers: [{ name: "main" }],
    volumes: [
      { name: "scratch", emptyDir: {} },
      { name: "cache", emptyDir: { medium: "Memory" } },
      { name: "keys", secret: { secretName: "keys" } },
    ],
  },
});

/** A mounter that only records mounts. */
function pretended(): Mounter & { readonly points: Map<string, string> } {
  const points = new Map<string, string>();
  const below = async (path: string) =>
    [...points.keys()].filter((point) => point.startsWith(`${path}/`)).sort((a, b) => b.length - a.length);
  return {
    points,
    listMountPoints: async (path) => (points.has(path) ? [...(await below(path)), path] : await below(path)),
    tmpfs: async (target, bytes) => void points.set(target, bytes === 0 ? "tmpfs" : `tmpfs of ${bytes} bytes`),
    hugePages: async (target, pageSize) => void points.set(target, pageSize),
    bind: async (source, target) => void points.set(target, source),
    unmount: async (target) => void points.delete(target),
  };
}

async function managed(claims?: ClaimSource, bind?: Mounter["bind"], memoryBytes = 0) {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-volume-manager-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  const pretence = pretended();
  const mounter = { ...pretence, bind: bind ?? pretence.bind };
  const events: string[] = [];
  const clock = new FakeClock();
  const volumes = new VolumeManager({
    directories: { rootDir, podLogsDir: rootDir },
    mounter,
    clock,
    tokens: new TokenManager({ source: { requestToken: async (_namespace, _account, request) => request }, clock }),
    events: { recordPodEvent: (_, ...event) => void events.push(event.join(" ")) },
    claims: claims ?? { claim: async () => undefined, persistentVolume: async () => undefined },
    objects: { configMap: async () => undefined, secret: async () => ({ key: Buffer.from("value") }) },
    node: () => ({ name: "node", ips: [], allocatable: { cpuMillis: 0, memoryBytes, storageBytes: 0 } }),
  });
  return { mounter, volumes, events, rootDir };
}

t.test("VolumeManager.unmountAll() unmounts everything and keeps files on disk", async (t) => {
  const { mounter, volumes } = await managed();
  await volumes.setUp(pod, []);
  const scratch = volumes.path(pod, pod.spec!.volumes![0]!);
  await writeFile(join(scratch, "kept"), "work");
  t.equal(mounter.points.size, 2, "memory and the secret are mounted");
  await volumes.unmountAll();
  t.equal(mounter.points.size, 0);
  t.equal(await readFile(join(scratch, "kept"), "utf8"), "work");
  await volumes.setUp(pod, []);
  t.equal(mounter.points.size, 2, "a pod that starts again is mounted again");
});

t.test("VolumeManager.setUp() refuses volumes of git without their feature gate", async (t) => {
  const { volumes } = await managed();
  const volume = { name: "source", gitRepo: { repository: "https://example.com/a.git" } };
  const cloning: Pod = { ...pod, spec: { containers: [], volumes: [volume] } };
  await t.rejects(volumes.setUp(mountAll(cloning), []), {
    message: /^MountVolume.SetUp failed for volume "source" : git-repo volume plugin has been disabled; if necessary,/,
  });
});

t.test("VolumeManager.tearDown() unmounts and removes, and is idempotent", async (t) => {
  const { mounter, volumes } = await managed();
  await volumes.setUp(pod, []);
  const scratch = volumes.path(pod, pod.spec!.volumes![0]!);
  await volumes.tearDown("uid-1");
  await volumes.tearDown("uid-1");
  t.equal(mounter.points.size, 0);
  await t.rejects(stat(scratch));
});

t.test("VolumeManager.setUp() mounts the volume of a claim once, and tearDown() keeps its content", async (t) => {
  const data = await mkdtemp(join(tmpdir(), "svc-claimed-"));
  t.teardown(() => rm(data, { recursive: true, force: true }));
  await writeFile(join(data, "kept"), "work");
  let requests = 0;
  const { mounter, volumes } = await managed({
    async claim() {
      requests += 1;
      return { metadata: { uid: "claim" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
    },
    persistentVolume: async () => ({ spec: { claimRef: { uid: "claim" }, local: { path: data } } }),
  });
  const volume = { name: "data", persistentVolumeClaim: { claimName: "data" } };
  const claiming: Pod = { ...pod, spec: { containers: [], volumes: [volume] } };
  await volumes.setUp(mountAll(claiming), []);
  await volumes.setUp(mountAll(claiming), []);
  t.same([...mounter.points], [[volumes.path(claiming, volume), data]]);
  t.equal(requests, 1, "a mounted volume needs no request");
  await volumes.tearDown("uid-1");
  t.equal(await readFile(join(data, "kept"), "utf8"), "work");
});

t.test("VolumeManager.groups() has the groups that persistent volumes name", async (t) => {
  const data = await mkdtemp(join(tmpdir(), "svc-grouped-"));
  t.teardown(() => rm(data, { recursive: true, force: true }));
  const claims: ClaimSource = {
    claim: async (_, name) => ({
      metadata: { name, uid: name },
      spec: { volumeName: name },
      status: { phase: "Bound" },
    }),
    persistentVolume: async (name) => ({
      metadata: { name, annotations: { "pv.beta.kubernetes.io/gid": name } },
      spec: { claimRef: { uid: name }, local: { path: data } },
    }),
  };
  const { volumes } = await managed(claims);
  const names = ["4321", "none", "77"];
  const grouped = mountAll({
    ...pod,
    spec: {
      containers: [],
      volumes: names.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    },
  });
  t.same(volumes.groups(grouped), []);
  await volumes.setUp(grouped, []);
  t.same(volumes.groups(grouped), [4321, 77]);
  await volumes.tearDown("uid-1");
  t.same(volumes.groups(grouped), []);
});

t.test("VolumeManager.setUp() rejects volumes of types that Kubernetes has no plugin for", async (t) => {
  const { volumes } = await managed();
  const volume = { name: "data", glusterfs: { endpoints: "e", path: "p" } };
  const error = await volumes
    .setUp(mountAll({ ...pod, spec: { containers: [], volumes: [volume] } }), [])
    .catch((each: unknown) => each);
  t.match((error as MountError).volumes, [
    {
      isUnresolved: true,
      message: 'failed to get Plugin from volumeSpec for volume "data" err=no volume plugin matched',
    },
  ]);
});

t.test("VolumeManager.setUp() reports errors of files as Go prints them", async (t) => {
  const { volumes, rootDir } = await managed();
  const volume = { name: "v", hostPath: { path: join(rootDir, "a/b/c"), type: "FileOrCreate" as const } };
  await t.rejects(volumes.setUp(mountAll({ ...pod, spec: { containers: [], volumes: [volume] } }), []), {
    message: `MountVolume.SetUp failed for volume "v" : open ${rootDir}/a/b/c: no such file or directory`,
  });
});

t.test("VolumeManager.tearDown() removes nothing while a mount cannot be unmounted", async (t) => {
  const { mounter, volumes } = await managed();
  await volumes.setUp(pod, []);
  const scratch = volumes.path(pod, pod.spec!.volumes![0]!);
  mounter.unmount = async () => undefined;
  await t.rejects(volumes.tearDown("uid-1"), /is still mounted/);
  t.ok((await stat(scratch)).isDirectory());
});

t.test("VolumeManager.setUp() rejects with every volume that fails", async (t) => {
  const { volumes } = await managed();
  const failing: Pod = {
    ...pod,
    spec: {
      containers: [],
      volumes: [
        { name: "settings", configMap: { name: "absent" } },
        { name: "fine", emptyDir: {} },
        { name: "data", persistentVolumeClaim: { claimName: "none" } },
        { name: "all", projected: { sources: [{ configMap: { name: "a" } }, { configMap: { name: "b" } }] } },
      ],
    },
  };
  const error = await volumes.setUp(mountAll(failing), []).catch((each: unknown) => each);
  t.same(
    (error as MountError).volumes.map(({ message }) => message),
    [
      'MountVolume.SetUp failed for volume "settings" : configmap "absent" not found',
      "error processing PVC default/none: failed to fetch PVC from API server: " +
        'persistentvolumeclaims "none" not found',
      'MountVolume.SetUp failed for volume "all" : [configmap "a" not found, configmap "b" not found]',
    ],
  );
});

for (const [what, limits, sizeLimit, bytes] of [
  ["what the node has for pods", {}, undefined, 4096],
  ["the pod's limit", { memory: "2Ki" }, undefined, 2048],
  ["the volume's limit", { memory: "2Ki" }, "1Ki", 1024],
  ["the pod's limit below the volume's", { memory: "2Ki" }, "3Ki", 2048],
  ["what the node has below all limits", { memory: "1Mi" }, "1Mi", 4096],
] as const) {
  t.test(`VolumeManager.setUp() limits volumes in memory to ${what}`, async (t) => {
    const { mounter, volumes } = await managed(undefined, undefined, 4096);
    const limited = mountAll({
      ...pod,
      spec: {
        containers: [{ name: "main", resources: { limits } }],
        volumes: [
          { name: "cache", emptyDir: { medium: "Memory", ...(sizeLimit === undefined ? {} : { sizeLimit }) } },
          { name: "keys", secret: { secretName: "keys" } },
        ],
      },
    });
    await volumes.setUp(limited, []);
    const sizes = limited.spec!.volumes!.map((volume) => mounter.points.get(volumes.path(limited, volume)));
    t.same(sizes, [`tmpfs of ${bytes} bytes`, `tmpfs of ${limits.memory === "2Ki" ? 2048 : 4096} bytes`]);
  });
}

t.test("VolumeManager.setUp() mounts memory or huge pages for the medium of an emptyDir", async (t) => {
  const { mounter, volumes } = await managed();
  const requests = { "hugepages-2Mi": "4Mi" };
  const larger = { ...requests, "hugepages-1Gi": "1Gi" };
  const huge: Pod = {
    ...pod,
    spec: {
      containers: [{ name: "main", resources: { requests } }],
      volumes: [
        { name: "one", emptyDir: { medium: "HugePages" } },
        { name: "two", emptyDir: { medium: "HugePages-2Mi" } },
      ],
    },
  };
  await volumes.setUp(mountAll(huge), []);
  t.same([...mounter.points.values()].sort(), ["2Mi", "2Mi"]);
  const two: Pod = {
    ...huge,
    spec: { ...huge.spec!, containers: [{ name: "main", resources: { requests: larger } }] },
  };
  await volumes.tearDown("uid-1");
  await t.rejects(
    volumes.setUp(mountAll(two), []),
    /medium: HugePages can't be used if container requests multiple huge page sizes$/,
  );
  const unclear: Pod = { ...huge, spec: { ...huge.spec!, containers: [{ name: "main" }] } };
  await volumes.tearDown("uid-1");
  await t.rejects(
    volumes.setUp(mountAll(unclear), []),
    /hugePages storage requested, but there is no resource request for huge pages/,
  );
});

const root = process.getuid?.() === 0 ? {} : { skip: "only root gives files away" };

t.test("VolumeManager applies the first pod's fsGroup to a local volume, and none to a hostPath", root, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-shared-volume-"));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const kinds = { local: { local: { path: directory } }, host: { hostPath: { path: directory } } };
  const claims: ClaimSource = {
    claim: async (_, name) => ({
      metadata: { name, namespace: "default", uid: name },
      spec: { volumeName: name },
      status: { phase: "Bound" },
    }),
    persistentVolume: async (name) => ({
      metadata: { name },
      spec: { claimRef: { uid: name }, ...kinds[name as keyof typeof kinds] },
    }),
  };
  const mounted: string[] = [];
  // A bind mount: the same directory at two paths.
  const bind: Mounter["bind"] = async (source, target) => {
    await rm(target, { recursive: true });
    await symlink(source, target);
    mounted.push(target);
  };
  const at = await managed(claims, bind);
  at.mounter.listMountPoints = async (path) => mounted.filter((each) => each.startsWith(path));
  const podOf = (uid: string, claimName: string, fsGroup: number): Pod => ({
    metadata: { name: uid, namespace: "default", uid },
    spec: {
      containers: [],
      securityContext: { fsGroup },
      volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
    },
  });
  const groupAfter = async (...pod: Parameters<typeof podOf>) => {
    await at.volumes.setUp(mountAll(podOf(...pod)), []);
    return (await stat(directory)).gid;
  };
  t.equal(await groupAfter("a", "host", 4000), 0);
  mounted.length = 0;
  t.equal(await groupAfter("b", "local", 2000), 2000);
  t.equal(await groupAfter("c", "local", 2000), 2000);
  t.same(at.events, []);
  t.equal(await groupAfter("d", "local", 3000), 2000, "those who have it go on having it");
  t.same(at.events, [
    "Warning AlreadyMountedVolume The requested fsGroup is 3000, but the volume local has GID 2000. " +
      "The volume may not be shareable.",
  ]);
});

t.test("VolumeManager sets up a bounded number of volumes at a time, and reports all that fail in order", async (t) => {
  let running = 0;
  let most = 0;
  const claim = async (_namespace: string, name: string) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    throw new Error(`no ${name}`);
  };
  const { volumes } = await managed({ claim, persistentVolume: async () => undefined });
  const names = Array.from({ length: 200 }, (_, index) => `v${index}`);
  const claims = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const volumeMounts = names.map((name) => ({ name, mountPath: `/${name}` }));
  const spec = { volumes: claims, containers: [{ name: "main", volumeMounts }] };
  const error = await volumes.setUp({ ...pod, spec }, []).catch((thrown) => thrown);
  t.same(
    (error as MountError).volumes.map(({ name }) => name),
    names,
  );
  t.ok(most > 1 && most <= 16, `${most} at a time`);
});
