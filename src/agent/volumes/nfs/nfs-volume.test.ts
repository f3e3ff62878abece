import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { mountAll } from "../../../testing/agent/mount-all.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { TokenManager } from "../projected/token-manager.ts";
import { isReadOnly, VolumeManager } from "../volume-manager.ts";
import { mountNfs, type RemoteMount, toNfsVolume } from "./nfs-volume.ts";

async function start(t: Test, mountRemote?: (mount: RemoteMount) => Promise<void>, pv?: PersistentVolume) {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-nfs-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  const points = new Set<string>();
  const mounts: RemoteMount[] = [];
  const mounter = {
    listMountPoints: async (path: string) => [...points].filter((point) => `${point}/`.startsWith(`${path}/`)),
    tmpfs: async () => undefined,
    hugePages: async () => undefined,
    bind: async () => undefined,
    unmount: async (target: string) => void points.delete(target),
  };
  const open = () =>
    new VolumeManager({
      directories: { rootDir, podLogsDir: rootDir },
      mounter,
      clock: new FakeClock(),
      tokens: new TokenManager({
        source: { requestToken: async (_n, _a, request) => request },
        clock: new FakeClock(),
      }),
      events: { recordPodEvent: () => undefined },
      claims: {
        claim: async () => ({ metadata: { uid: "claim" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } }),
        persistentVolume: async () => pv,
      },
      objects: { configMap: async () => undefined, secret: async () => undefined },
      node: () => ({ name: "n", ips: [], allocatable: { cpuMillis: 0, memoryBytes: 0, storageBytes: 0 } }),
      mountRemote:
        mountRemote ??
        (async (mount) => {
          mounts.push(mount);
          points.add(mount.target);
        }),
    });
  return { rootDir, points, mounts, mounter, open };
}

const podWith = (volume: Volume): Pod =>
  mountAll({ metadata: { name: "web", namespace: "default", uid: "u" }, spec: { containers: [], volumes: [volume] } });

t.test(
  "an NFS volume of a pod is mounted once, also after a restart of the agent, and unmounted at the end",
  async (t) => {
    const { rootDir, points, mounts, open } = await start(t);
    const volume: Volume = { name: "data", nfs: { server: "files.example.com", path: "/export", readOnly: true } };
    const target = join(rootDir, "pods/u/volumes/kubernetes.io~nfs/data");
    const pod = podWith(volume);
    const before = open();
    await before.setUp(pod, []);
    t.same(mounts, [{ type: "nfs", source: "files.example.com:/export", target, options: ["ro"] }]);
    t.equal(before.path(pod, volume), target);
    t.equal(isReadOnly(volume), true);
    const after = open();
    await after.setUp(pod, []);
    t.equal(mounts.length, 1);
    t.equal(after.path(pod, volume), target);
    await after.tearDown("u");
    t.equal(points.size, 0);
  },
);

t.test("an NFS persistent volume has its own name and mount options, and the claim decides about writes", async (t) => {
  const pv: PersistentVolume = {
    metadata: { name: "pv" },
    spec: {
      claimRef: { uid: "claim" },
      nfs: { server: "fd00::1", path: "/e", readOnly: true },
      mountOptions: ["vers=4.1", "hard"],
    },
  };
  const { rootDir, mounts, open } = await start(t, undefined, pv);
  const target = join(rootDir, "pods/u/volumes/kubernetes.io~nfs/pv");
  const claimed: Volume = { name: "data", persistentVolumeClaim: { claimName: "c" } };
  const volumes = open();
  await volumes.setUp(podWith(claimed), []);
  t.same(mounts, [{ type: "nfs", source: "[fd00::1]:/e", target, options: ["hard", "vers=4.1"] }]);
  t.equal(volumes.path(podWith(claimed), claimed), target);
  await open().setUp(podWith(claimed), []);
  t.equal(mounts.length, 1, "after a restart of the agent");
  const readOnly: Volume = { name: "data", persistentVolumeClaim: { claimName: "c", readOnly: true } };
  t.same(toNfsVolume(readOnly, { claim: {}, volume: pv })?.options, ["hard", "ro", "vers=4.1"]);
  t.equal(toNfsVolume({ name: "data", emptyDir: {} }, undefined), undefined);
});

t.test("a mount that fails has kubelet's text, and leaves no directory", async (t) => {
  const { rootDir, mounter, open } = await start(t, async () => {
    throw new Error("mount failed: exit status 32");
  });
  await t.rejects(open().setUp(podWith({ name: "data", nfs: { server: "s", path: "/e" } }), []), {
    message: 'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32',
    volumes: [{ event: "FailedMount" }],
  });
  t.same(await readdir(join(rootDir, "pods/u/volumes/kubernetes.io~nfs")), []);
  const target = join(rootDir, "target");
  const nfs = { specName: "v", source: "127.0.0.1:/e", options: ["soft"] };
  // The machine's mount program needs a helper program, root, or a server.
  const failed = await mountNfs(nfs, target, { mounter }, undefined).catch((error: Error) => error);
  t.match(
    String(failed),
    /^Error: mount failed: exit status \d+\nMounting command: mount\nMounting arguments: -t nfs -o soft /,
  );
  t.match(String(failed), `127.0.0.1:/e ${target}\nOutput: mount: `);
});
