import t from "tap";
import { eventKind } from "../../../api/core/event/kind.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Client } from "../../../client/client.ts";
import { startInMemoryCluster } from "../../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { until } from "../../../testing/std/until.ts";

const namespace = "default";
const POD = { name: "recycler-for-a", namespace };

/** A volume whose claim was deleted. */
async function releaseVolume(client: Client, clock: FakeClock): Promise<void> {
  await client.create(persistentVolumeKind, {
    metadata: { name: "a" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "4Gi" },
      hostPath: { path: "/data/a", type: "" },
      persistentVolumeReclaimPolicy: "Recycle",
      storageClassName: "s",
    },
  });
  await client.create(persistentVolumeClaimKind, {
    metadata: { name: "c", namespace },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, storageClassName: "s" },
  });
  await clock.advance(1000);
  await client.patch(persistentVolumeClaimKind, { name: "c", namespace }, "merge", { metadata: { finalizers: null } });
  await client.delete(persistentVolumeClaimKind, { name: "c", namespace });
  await waitForPod(client, clock);
}

async function waitForPod(client: Client, clock: FakeClock): Promise<void> {
  const find = (): Promise<Pod | undefined> => client.get(podKind, POD).catch(() => undefined);
  await until("the recycler's pod", async () => await find(), { wait: () => clock.advance(500) });
}

/** Ends the pod, and waits until it is deleted and the volume has the phase. */
async function end(client: Client, clock: FakeClock, status: object, phase: string): Promise<void> {
  await client.patch(podKind, POD, "strategic", { status }, { subresource: "status" });
  const isReached = async (): Promise<boolean> =>
    (await client.get(persistentVolumeKind, { name: "a" })).status?.phase === phase;
  await until(`a volume that is ${phase}`, isReached, { wait: () => clock.advance(100) });
}

/** Waits for an event, `Reason: message`. */
async function waitForEvent(client: Client, clock: FakeClock, text: string): Promise<void> {
  const isRecorded = async (): Promise<boolean> =>
    (await client.list(eventKind, {})).items.some(({ reason, message }) => `${reason}: ${message}` === text);
  await until(text, isRecorded, { wait: () => clock.advance(100) });
}

t.test("a pod empties a released volume, which is available afterwards", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["persistentvolume-binder"] }, clock);
  await releaseVolume(client, clock);
  const { spec } = await client.get(podKind, POD);
  t.match(spec, {
    activeDeadlineSeconds: 120,
    restartPolicy: "Never",
    volumes: [{ name: "vol", hostPath: { path: "/data/a" } }],
    containers: [{ name: "pv-recycler", volumeMounts: [{ name: "vol", mountPath: "/scrub" }] }],
  });
  t.equal((await client.get(persistentVolumeKind, { name: "a" })).status?.phase, "Released");
  await end(client, clock, { phase: "Succeeded" }, "Available");
  const volume = await client.get(persistentVolumeKind, { name: "a" });
  t.equal(volume.spec?.claimRef, undefined);
  await waitForEvent(client, clock, "VolumeRecycled: Volume recycled");
  await t.rejects(client.get(podKind, POD), "the pod is deleted");
});

t.test("a volume whose pod fails has failed, and is recycled again", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["persistentvolume-binder"] }, clock);
  await releaseVolume(client, clock);
  const first = (await client.get(podKind, POD)).metadata?.uid;
  await end(client, clock, { phase: "Failed", message: "no space" }, "Failed");
  await waitForEvent(client, clock, "VolumeFailedRecycle: Recycle failed: failed to recycle volume: no space");
  await waitForPod(client, clock);
  t.not((await client.get(podKind, POD)).metadata?.uid, first, "another pod runs");
  await end(client, clock, { phase: "Succeeded" }, "Available");
});
