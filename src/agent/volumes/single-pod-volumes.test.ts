import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { PersistentVolume, PersistentVolumeSpec } from "../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { mountAll } from "../../testing/agent/mount-all.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { TokenManager } from "./projected/token-manager.ts";
import { SinglePodVolumes } from "./single-pod-volumes.ts";
import { VolumeManager } from "./volume-manager.ts";

const IN_USE = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

const volumeOf = (spec: Partial<PersistentVolumeSpec>): PersistentVolume => ({ metadata: { name: "pv" }, spec });
const csi = { driver: "d.example.com", volumeHandle: "h" };

t.test("a second pod is refused a ReadWriteOncePod volume, of the types that Kubernetes compares", async (t) => {
  const once = { accessModes: ["ReadWriteOncePod"] } as const;
  const rows: readonly (readonly [PersistentVolume, operation: string | undefined])[] = [
    [volumeOf({ ...once, csi }), "MountVolume.SetUp"],
    [volumeOf({ ...once, csi, volumeMode: "Block" }), "MapVolume.SetUpDevice"],
    [volumeOf({ ...once, local: { path: "/d" } }), "MountVolume.SetUp"],
    [volumeOf({ ...once, hostPath: { path: "/d" } }), undefined],
    // The mode that the pod uses is not known.
    [volumeOf({ accessModes: ["ReadWriteOncePod", "ReadWriteOnce"], csi }), undefined],
    [volumeOf({ accessModes: ["ReadWriteOnce"], csi }), undefined],
  ];
  for (const [volume, operation] of rows) {
    const volumes = new SinglePodVolumes();
    const what = JSON.stringify(volume.spec);
    volumes.check("a", volume);
    volumes.add("a", volume);
    t.doesNotThrow(() => volumes.check("a", volume), what);
    if (operation === undefined) t.doesNotThrow(() => volumes.check("b", volume), what);
    else t.throws(() => volumes.check("b", volume), { operation, volume: "pv", message: IN_USE }, what);
    volumes.removePod("a");
    t.doesNotThrow(() => volumes.check("b", volume), what);
  }
});

t.test(
  "VolumeManager gives a ReadWriteOncePod volume to the next pod once the first one has released it",
  async (t) => {
    const rootDir = await mkdtemp(join(tmpdir(), "svc-single-pod-"));
    t.teardown(() => rm(rootDir, { recursive: true, force: true }));
    const points = new Set<string>();
    const start = () =>
      new VolumeManager({
        directories: { rootDir, podLogsDir: rootDir },
        mounter: {
          listMountPoints: async (path) => [...points].filter((point) => `${point}/`.startsWith(`${path}/`)),
          tmpfs: async () => undefined,
          hugePages: async () => undefined,
          bind: async (_source, target) => void points.add(target),
          unmount: async (target) => void points.delete(target),
        },
        clock: new FakeClock(),
        tokens: new TokenManager({
          source: { requestToken: async (_n, _a, request) => request },
          clock: new FakeClock(),
        }),
        events: { recordPodEvent: () => undefined },
        claims: {
          claim: async () => ({
            metadata: { uid: "claim" },
            spec: { volumeName: "pv" },
            status: { phase: "Bound" },
          }),
          persistentVolume: async () =>
            volumeOf({ claimRef: { uid: "claim" }, accessModes: ["ReadWriteOncePod"], local: { path: rootDir } }),
        },
        objects: { configMap: async () => undefined, secret: async () => undefined },
        node: () => ({ name: "n", ips: [], allocatable: { cpuMillis: 0, memoryBytes: 0, storageBytes: 0 } }),
      });
    const podOf = (uid: string): Pod =>
      mountAll({
        metadata: { name: uid, namespace: "default", uid },
        spec: { containers: [], volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
      });
    const before = start();
    await before.setUp(podOf("a"), []);
    const refused = { message: `MountVolume.SetUp failed for volume "pv" : ${IN_USE}` };
    await t.rejects(before.setUp(podOf("b"), []), refused);
    const after = start();
    await after.setUp(podOf("a"), []);
    await t.rejects(after.setUp(podOf("b"), []), refused, "after a restart of the agent");
    await after.tearDown("a");
    await t.resolves(after.setUp(podOf("b"), []));
  },
);
