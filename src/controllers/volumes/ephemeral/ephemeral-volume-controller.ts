/** The ephemeral volume controller: creates the claims of pods' generic ephemeral volumes, owned by the pod. */

import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { createEventRecorder } from "../../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../../std/async/wait-for-abort.ts";
import type { Counter } from "../../../std/metrics/metrics.ts";
import { statusCodeOf } from "../../api-errors.ts";
import type { ControllerDeps } from "../../controller.ts";
import { createControllerQueue } from "../../controller-queue.ts";
import { controllerOf, keyOf, objectReference, splitKey } from "../../workload/object-keys.ts";
import { messageOf } from "../../workload/pod-control.ts";
import { claimNameOf, claimNamesOf } from "../pod-claims.ts";

const WORKERS = 5;
const BACKOFF = { initialMs: 5, maxMs: 1_000_000, jitter: 0 };

export async function runEphemeralVolumeController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const pods = informers.of(podKind);
  const claims = informers.of(persistentVolumeClaimKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "ephemeral_volume" });
  const count = (name: string, help: string): Counter | undefined =>
    deps.registry?.counter({ name: `ephemeral_volume_controller_${name}`, help, stability: "ALPHA" }).with();
  const creations = count("create_total", "Number of requests that create claims.");
  const failures = count("create_failures_total", "Number of requests that create claims and fail.");

  async function syncPod(key: string, stopping: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const pod = pods.get(name, namespace);
    if (pod === undefined || pod.metadata?.deletionTimestamp !== undefined) return;
    for (const volume of ephemeralVolumes(pod)) {
      try {
        await ensureClaim(pod, volume, stopping);
      } catch (error) {
        stopping.throwIfAborted();
        const message = `ephemeral volume ${volume.name}: ${messageOf(error)}`;
        recorder.record(objectReference(pod), "Warning", "FailedBinding", message);
        throw error;
      }
    }
  }

  async function ensureClaim(pod: Pod, volume: Volume, stopping: AbortSignal): Promise<void> {
    const name = claimNameOf(pod, volume) ?? "";
    const { namespace } = pod.metadata ?? {};
    const found = claims.get(name, namespace);
    if (found !== undefined) {
      if (controllerOf(found)?.uid === pod.metadata?.uid) return;
      throw new Error(
        `PVC ${namespace}/${name} was not created for pod ${namespace}/${pod.metadata?.name} (pod is not owner)`,
      );
    }
    creations?.inc();
    try {
      await client.create(persistentVolumeClaimKind, claimOf(pod, volume, name), stopping);
    } catch (error) {
      // The claim of the previous sync, which the informer delivers later.
      if (statusCodeOf(error) === 409 && (await isOwn(pod, name, stopping))) return;
      failures?.inc();
      throw new Error(`create PVC ${name}: ${messageOf(error)}`, { cause: error });
    }
  }

  async function isOwn(pod: Pod, name: string, stopping: AbortSignal): Promise<boolean> {
    const { namespace, uid } = pod.metadata ?? {};
    const found = await client.get(persistentVolumeClaimKind, { name, namespace }, stopping).catch(() => undefined);
    return found !== undefined && controllerOf(found)?.uid === uid;
  }

  await using queue = createControllerQueue(deps, {
    name: "ephemeral_volume",
    workers: WORKERS,
    backoff: BACKOFF,
    sync: syncPod,
    onError: (key, error) => log.v(2)?.info("Failed to sync pod, will retry", { key, error: String(error) }),
  });
  await waitForCacheSync([pods, claims], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => {
        // The volumes of a pod never change.
        if (before?.metadata?.uid !== pod.metadata?.uid && ephemeralVolumes(pod).length > 0) queue.add(keyOf(pod));
      },
    }),
  );
  subscriptions.defer(
    claims.subscribe({
      delete: (claim) => {
        for (const pod of podsWithClaim(pods.list(), claim)) queue.add(keyOf(pod));
      },
    }),
  );
  await waitForAbort(signal);
}

function ephemeralVolumes({ spec }: Pod): readonly Volume[] {
  return (spec?.volumes ?? []).filter(({ ephemeral }) => ephemeral !== undefined);
}

function podsWithClaim(pods: Iterable<Pod>, { metadata }: PersistentVolumeClaim): readonly Pod[] {
  const { name = "", namespace } = metadata ?? {};
  return [...pods].filter(
    (pod) =>
      pod.metadata?.namespace === namespace && ephemeralVolumes(pod).length > 0 && claimNamesOf(pod).includes(name),
  );
}

function claimOf(pod: Pod, { ephemeral }: Volume, name: string): PersistentVolumeClaim {
  const { metadata, spec } = ephemeral?.volumeClaimTemplate ?? {};
  const { labels, annotations } = metadata ?? {};
  const { namespace, name: podName = "", uid = "" } = pod.metadata ?? {};
  const owner = { apiVersion: "v1", kind: "Pod", name: podName, uid, controller: true, blockOwnerDeletion: true };
  return { metadata: { name, namespace, labels, annotations, ownerReferences: [owner] }, spec };
}
