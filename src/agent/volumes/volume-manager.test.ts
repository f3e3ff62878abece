import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../api/core/pod.ts";
import { FakeClock } from "../../std/fake-clock.ts";
import type { Mounter } from "./mounter.ts";
import { TokenManager } from "./token-manager.ts";
import { VolumeManager } from "./volume-manager.ts";

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

/** Mounts that are but remembered. */
function pretended(): Mounter & { readonly points: Set<string> } {
  const points = new Set<string>();
  const below = async (path: string) =>
    [...points].filter((point) => point.startsWith(`${path}/`)).sort((a, b) => b.length - a.length);
  return {
    points,
    below: async (path) => (points.has(path) ? [...(await below(path)), path] : await below(path)),
    tmpfs: async (target) => void points.add(target),
    hugePages: async (target) => void points.add(target),
    bind: async (_source, target) => void points.add(target),
    unmount: async (target) => void points.delete(target),
  };
}

async function managed() {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-volume-manager-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  const mounter = pretended();
  const clock = new FakeClock();
  const volumes = new VolumeManager({
    directories: { rootDir, podLogsDir: rootDir },
    mounter,
    clock,
    tokens: new TokenManager({ source: { requestToken: async (_namespace, _account, request) => request }, clock }),
    objects: { configMap: async () => undefined, secret: async () => ({ key: Buffer.from("value") }) },
    node: () => ({ name: "node", ips: [], allocatable: { cpuMillis: 0, memoryBytes: 0, storageBytes: 0 } }),
  });
  return { mounter, volumes };
}

t.test("VolumeManager.unmountAll() lets go of what is mounted and leaves what is on disk", async (t) => {
  const { mounter, volumes } = await managed();
  await volumes.setUp(pod, []);
  const scratch = volumes.path(pod, pod.spec!.volumes![0]!);
  await writeFile(join(scratch, "kept"), "work");
  t.equal(mounter.points.size, 2, "memory and the secret are mounted");
  await volumes.unmountAll();
  t.same([...mounter.points], []);
  t.equal(await readFile(join(scratch, "kept"), "utf8"), "work");
  await volumes.setUp(pod, []);
  t.equal(mounter.points.size, 2, "a pod that starts again is mounted again");
});

t.test("VolumeManager.tearDown() unmounts and removes, again and again", async (t) => {
  const { mounter, volumes } = await managed();
  await volumes.setUp(pod, []);
  const scratch = volumes.path(pod, pod.spec!.volumes![0]!);
  await volumes.tearDown("uid-1");
  await volumes.tearDown("uid-1");
  t.same([...mounter.points], []);
  await t.rejects(stat(scratch));
});
