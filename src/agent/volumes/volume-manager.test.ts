import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { ClaimSource } from "./claims.ts";
import type { Mounter } from "./mount/mounter.ts";
import { TokenManager } from "./projected/token-manager.ts";
import { type MountError, VolumeManager } from "./volume-manager.ts";

const pod: Pod = {
  metadata: { name: "web", namespace: "default", uid: "uid-1" },
  spec: {
    containers: [{ name: "main" }],
    volumes: [
      { name: "scratch", emptyDir: {} },
      { name: "cache", emptyDir: { medium: "Memory" } },
      { name: "keys", secret: { secretName: "keys" } },
    ],
  },
};

/** A mounter that only records mounts. */
function pretended(): Mounter & { readonly points: Map<string, string> } {
  const points = new Map<string, string>();
  const below = async (path: string) =>
    [...points.keys()].filter((point) => point.startsWith(`${path}/`)).sort((a, b) => b.length - a.length);
  return {
    points,
    listMountPoints: async (path) => (points.has(path) ? [...(await below(path)), path] : await below(path)),
    tmpfs: async (target) => void points.set(target, "tmpfs"),
    hugePages: async (target, pageSize) => void points.set(target, pageSize),
    bind: async (source, target) => void points.set(target, source),
    unmount: async (target) => void points.delete(target),
  };
}

async function managed(claims?: ClaimSource, bind?: Mounter["bind"]) {
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
    node: () => ({ name: "node", ips: [], allocatable: { cpuMillis: 0, memoryBytes: 0, storageBytes: 0 } }),
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
  await t.rejects(volumes.setUp(cloning, []), {
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
  await volumes.setUp(claiming, []);
  await volumes.setUp(claiming, []);
  t.same([...mounter.points], [[volumes.path(claiming, volume), data]]);
  t.equal(requests, 1, "a mounted volume needs no request");
  await volumes.tearDown("uid-1");
  t.equal(await readFile(join(data, "kept"), "utf8"), "work");
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
  const error = await volumes.setUp(failing, []).catch((each: unknown) => each);
  t.same(
    (error as MountError).volumes.map(({ message }) => message),
    [
      'MountVolume.SetUp failed for volume "settings" : configmap "absent" not found',
      "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process " +
        "volumes=[data]: error processing PVC default/none: failed to fetch PVC from API server: " +
        'persistentvolumeclaims "none" not found',
      'MountVolume.SetUp failed for volume "all" : [configmap "a" not found, configmap "b" not found]',
    ],
  );
});

t.test("VolumeManager.setUp() mounts memory or huge pages for the medium of an emptyDir", async (t) => {
  const { mounter, volumes } = await managed();
  const requests = { "hugepages-2Mi": "4Mi" };
  const huge: Pod = {
    ...pod,
    spec: {
      containers: [{ name: "main", resources: { requests } }],
      volumes: [
        { name: "one", emptyDir: { medium: "HugePages" } },
        { name: "two", emptyDir: { medium: "HugePages-1Gi" } },
      ],
    },
  };
  await volumes.setUp(huge, []);
  t.same([...mounter.points.values()].sort(), ["1Gi", "2Mi"]);
  const unclear: Pod = { ...huge, spec: { ...huge.spec!, containers: [{ name: "main" }] } };
  await volumes.tearDown("uid-1");
  await t.rejects(volumes.setUp(unclear, []), /needs a container that requests huge pages/);
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
    await at.volumes.setUp(podOf(...pod), []);
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
