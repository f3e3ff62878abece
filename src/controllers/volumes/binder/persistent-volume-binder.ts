/**
 * The PersistentVolume binder: binds claims to volumes, requests new ones from provisioners, and reclaims volumes whose
 * claim is gone.
 *
 *     informers → queue → claim: find a volume, write both  |  volume: set the phase, reclaim
 */

import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import { createEventRecorder } from "../../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../../std/async/work-queue.ts";
import { isNotFoundOrConflict } from "../../api-errors.ts";
import type { ControllerDeps } from "../../controller.ts";
import { createControllerQueue } from "../../controller-queue.ts";
import { keyOf, splitKey } from "../../workload/object-keys.ts";
import { claimNamesOf } from "../pod-claims.ts";
import { AssumedObjects } from "./assumed-objects.ts";
import { Bindings } from "./bindings.ts";
import { type ClaimSyncDeps, syncClaim } from "./sync-claim.ts";
import { syncVolume, type VolumeSyncDeps } from "./sync-volume.ts";
import { explainMismatch, isBoundToClaim, matchesSelector } from "./volume-matching.ts";
import { registerBinderMetrics } from "./volume-metrics.ts";
import { VolumeRecycler } from "./volume-recycler.ts";

const BACKOFF = { initialMs: 100, maxMs: 60_000, jitter: 0.1 };
const CLAIM = "claim:";
const VOLUME = "volume:";

export async function runPersistentVolumeBinder(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers, options } = deps;
  const classes = informers.of(storageClassKind);
  const claimInformer = informers.of(persistentVolumeClaimKind);
  const volumeInformer = informers.of(persistentVolumeKind);
  const pods = informers.of(podKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "persistentvolume-controller" });
  using claims = new AssumedObjects(claimInformer);
  using volumes = new AssumedObjects(volumeInformer);
  const metrics =
    deps.registry &&
    registerBinderMetrics(
      deps.registry,
      () => volumeInformer.list(),
      () => claimInformer.list(),
    );
  const binding = { client, recorder, volumes, claims };
  const bindings = new Bindings(binding);
  const claimDeps: ClaimSyncDeps = {
    ...binding,
    bindings,
    classes,
    metrics,
    provisionsVolumes: options.provisionsVolumes,
    podsOfClaim: ({ metadata }) =>
      [...pods.list()].filter(
        (pod) => pod.metadata?.namespace === metadata?.namespace && claimNamesOf(pod).includes(metadata?.name ?? ""),
      ),
  };
  // One worker, so that two claims are never bound to one volume.
  await using queue: WorkQueue = createControllerQueue(
    { ...deps, workers: 1 },
    {
      name: "claims",
      workers: 1,
      backoff: BACKOFF,
      sync: async (key, stopping) => {
        if (key.startsWith(CLAIM)) {
          const { namespace, name } = splitKey(key.slice(CLAIM.length));
          const claim = claims.get(name, namespace);
          if (claim !== undefined) await syncClaim(claimDeps, claim, stopping);
        } else {
          const volume = volumes.get(key.slice(VOLUME.length));
          if (volume !== undefined) await syncVolume(volumeDeps, volume, stopping);
        }
      },
      onError: (key, error) => {
        // The informer delivers the newer object.
        if (isNotFoundOrConflict(error)) log.v(4)?.info("The object changed, will retry", { key });
        else log.v(2)?.info("Failed to sync a claim or volume, will retry", { key, error: String(error) });
      },
    },
  );
  await using recycler = new VolumeRecycler({
    client,
    pods,
    onEnd: (name) => queue.add(`${VOLUME}${name}`),
    signal,
  });
  const queueClaim = (key: string): void => queue.add(`${CLAIM}${key}`);
  const volumeDeps: VolumeSyncDeps = { ...binding, bindings, queueClaim, recycler, pods };
  await waitForCacheSync([classes, claimInformer, volumeInformer, pods], signal);
  const queueClaims = (isConcerned: (claim: PersistentVolumeClaim) => boolean): void => {
    for (const claim of claims.list()) {
      if (claim.status?.phase !== "Bound" && isConcerned(claim)) queue.add(`${CLAIM}${keyOf(claim)}`);
    }
  };
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    volumeInformer.subscribe({
      put: (volume, before) => {
        queue.add(`${VOLUME}${volume.metadata?.name}`);
        if (isNewlyAvailable(volume, before)) queueClaims((claim) => couldBind(volume, claim));
      },
      delete: ({ metadata, spec }) => {
        recycler.forget(metadata?.name ?? "");
        const { namespace, name } = spec?.claimRef ?? {};
        if (name !== undefined) queue.add(`${CLAIM}${namespace}/${name}`);
      },
    }),
  );
  subscriptions.defer(
    claimInformer.subscribe({
      put: (claim) => queue.add(`${CLAIM}${keyOf(claim)}`),
      delete: ({ spec }) => {
        if (spec?.volumeName) queue.add(`${VOLUME}${spec.volumeName}`);
      },
    }),
  );
  subscriptions.defer(
    classes.subscribe({
      put: (storageClass, before) => queueClaims((claim) => usesClass(claim, storageClass, before)),
    }),
  );
  let timer = clock.timer(options.claimBinderSyncPeriodMs, resync);
  subscriptions.defer(() => timer.cancel());
  /** Records the events of pending claims again, and retries failed deletions, as often as Kubernetes does. */
  function resync(): void {
    queueClaims(() => true);
    for (const volume of volumes.list()) {
      if (volume.status?.phase !== "Bound") queue.add(`${VOLUME}${volume.metadata?.name}`);
    }
    timer = clock.timer(options.claimBinderSyncPeriodMs, resync);
  }
  await waitForAbort(signal);
}

function isNewlyAvailable(volume: PersistentVolume, before: PersistentVolume | undefined): boolean {
  return volume.status?.phase === "Available" && before?.status?.phase !== "Available";
}

/** Whether a sync of the claim can bind it to the volume; others keep their events as they are. */
function couldBind(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const { volumeName } = claim.spec ?? {};
  if (volumeName) return volumeName === volume.metadata?.name;
  return (
    isBoundToClaim(volume, claim) || (explainMismatch(volume, claim) === undefined && matchesSelector(volume, claim))
  );
}

/** Whether the class is new for the claim: by its name, or as the default. */
function usesClass(
  claim: PersistentVolumeClaim,
  { metadata }: StorageClass,
  before: StorageClass | undefined,
): boolean {
  const name = storageClassNameOf(claim);
  return name === "" ? claim.spec?.storageClassName === undefined : before === undefined && name === metadata?.name;
}
