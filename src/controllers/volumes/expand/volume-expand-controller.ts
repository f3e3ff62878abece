/** The expand controller: marks claims that request more than they have for the resizer that expands their volume. */
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { createEventRecorder, type EventRecorder } from "../../../client/events/event-recorder.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { waitForAbort } from "../../../std/async/wait-for-abort.ts";
import type { ControllerDeps } from "../../controller.ts";
import { createControllerQueue } from "../../controller-queue.ts";
import { keyOf, objectReference, splitKey } from "../../workload/object-keys.ts";
import { storageOf } from "../binder/volume-matching.ts";
import { csiDriverOf, migratedPluginOf } from "../csi-migration.ts";
import { PRE_RESIZE_CAPACITY, STORAGE_RESIZER } from "../volume-annotations.ts";

const WORKERS = 10;
const BACKOFF = { initialMs: 5, maxMs: 1_000_000, jitter: 0 };

export async function runVolumeExpandController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const claims = informers.of(persistentVolumeClaimKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "volume_expand" });
  await using queue = createControllerQueue(deps, {
    name: "volume_expand",
    workers: WORKERS,
    backoff: BACKOFF,
    sync: (key, stopping) => expandVolume(deps, { claims, recorder }, key, stopping),
    onError: (key, error) => log.v(2)?.info("Failed to expand volume, will retry", { key, error: String(error) }),
  });
  const unsubscribe = claims.subscribe({
    put: (claim, before) => {
      if (claim.status?.phase === "Bound" && hasGrown(claim, before)) queue.add(keyOf(claim));
    },
  });
  try {
    await waitForAbort(signal);
  } finally {
    unsubscribe();
  }
}

function hasGrown(claim: PersistentVolumeClaim, before: PersistentVolumeClaim | undefined): boolean {
  if (before === undefined) return true;
  if (storageOf(claim.spec?.resources?.requests) > storageOf(before.spec?.resources?.requests)) return true;
  return storageOf(claim.status?.capacity) > storageOf(before.status?.capacity);
}

async function expandVolume(
  { client }: ControllerDeps,
  { claims, recorder }: { readonly claims: Informer<PersistentVolumeClaim>; readonly recorder: EventRecorder },
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name } = splitKey(key);
  const claim = claims.get(name, namespace);
  const volumeName = claim?.spec?.volumeName;
  if (claim === undefined || !volumeName) return;
  const isExpansion = storageOf(claim.spec?.resources?.requests) > storageOf(claim.status?.capacity);
  // The volume of a claim that has its size can only have an annotation of an earlier expansion.
  const volume = await client.get(persistentVolumeKind, { name: volumeName }, signal);
  if (volume.spec?.claimRef?.uid !== claim.metadata?.uid || volume.spec?.claimRef?.namespace !== namespace) {
    throw new Error(`persistent Volume is not bound to PVC being updated : ${key}`);
  }
  if (!isExpansion && volume.metadata?.annotations?.[PRE_RESIZE_CAPACITY] === undefined) return;
  const record = (message: string): void =>
    recorder.record(objectReference(claim), "Normal", "ExternalExpanding", message);
  const plugin = migratedPluginOf(volume);
  const driver = plugin === undefined ? undefined : csiDriverOf(plugin);
  if (driver === undefined) return record("waiting for an external controller to expand this PVC");
  record(`CSI migration enabled for ${plugin}; waiting for external resizer to expand the pvc`);
  if (claim.metadata?.annotations?.[STORAGE_RESIZER] === driver) return;
  const patch = { metadata: { annotations: { [STORAGE_RESIZER]: driver } } };
  // The controller's role allows it to change the status only; annotations can be changed with it.
  await client.patch(persistentVolumeClaimKind, { namespace, name }, "merge", patch, { subresource: "status", signal });
}
