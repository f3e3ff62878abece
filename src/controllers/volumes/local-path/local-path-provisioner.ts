/**
 * The provisioner of node-local directories, `svc.io/local-path`: creates a persistent volume for each claim of its
 * classes, in a directory on the node that the scheduler selected, and removes both when the claim is gone. It follows
 * the protocol of external provisioners and resizers.
 */

import { nodeKind } from "../../../api/core/node/kind.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { createEventRecorder } from "../../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict } from "../../api-errors.ts";
import type { ControllerDeps } from "../../controller.ts";
import { createControllerQueue } from "../../controller-queue.ts";
import { keyOf, splitKey } from "../../workload/object-keys.ts";
import { storageOf } from "../binder/volume-matching.ts";
import { PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER } from "../volume-annotations.ts";
import { LOCAL_PATH_PROVISIONER } from "./local-path-names.ts";
import { removeDirectory } from "./node-volumes.ts";
import { expandVolume, provisionVolume } from "./provision-volume.ts";
import { reclaimVolume } from "./reclaim-volume.ts";

const WORKERS = 4;
const BACKOFF = { initialMs: 1_000, maxMs: 120_000, jitter: 0.1 };
/** How long the creation of a volume may go on after its claim was deleted. */
const ORPHAN_DELAY_MS = 60_000;
const CLAIM = "claim:";
const VOLUME = "volume:";
/** The directory of a claim that was deleted while its volume was created: `directory:NODE/VOLUME`. */
const DIRECTORY = "directory:";

export async function runLocalPathProvisioner(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const claims = informers.of(persistentVolumeClaimKind);
  const volumes = informers.of(persistentVolumeKind);
  const classes = informers.of(storageClassKind);
  const nodes = informers.of(nodeKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: LOCAL_PATH_PROVISIONER });
  const provisioning = { client, recorder, volumes, classes, nodes };
  await using queue = createControllerQueue(deps, {
    name: "local-path-provisioner",
    workers: WORKERS,
    backoff: BACKOFF,
    sync: async (key, stopping) => {
      if (key.startsWith(VOLUME)) {
        const volume = volumes.get(key.slice(VOLUME.length));
        if (volume !== undefined) await reclaimVolume(provisioning, volume, stopping);
        return;
      }
      if (key.startsWith(DIRECTORY)) {
        const { namespace: nodeName, name: volumeName } = splitKey(key.slice(DIRECTORY.length));
        const isNeeded = volumes.get(volumeName) !== undefined || nodes.get(nodeName) === undefined;
        if (!isNeeded) await removeDirectory(client, nodeName, volumeName, stopping);
        return;
      }
      const { namespace, name } = splitKey(key.slice(CLAIM.length));
      const claim = claims.get(name, namespace);
      if (claim === undefined) return;
      if (claim.spec?.volumeName) await expandVolume(provisioning, claim, stopping);
      else await provisionVolume(provisioning, claim, stopping);
    },
    onError: (key, error) => {
      if (isNotFoundOrConflict(error)) log.v(2)?.info("Failed to sync, will retry", { key, error: String(error) });
      else log.warn("Failed to sync a local volume, will retry", { key, error: String(error) });
    },
  });
  await waitForCacheSync([claims, volumes, classes, nodes], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    claims.subscribe({
      put: (claim) => {
        if (claim.metadata?.annotations?.[STORAGE_PROVISIONER] !== LOCAL_PATH_PROVISIONER) return;
        const isUnbound = !claim.spec?.volumeName;
        const hasGrown = storageOf(claim.spec?.resources?.requests) > storageOf(claim.status?.capacity);
        if (isUnbound || (claim.status?.phase === "Bound" && hasGrown)) queue.add(`${CLAIM}${keyOf(claim)}`);
      },
      delete: ({ metadata, spec }) => {
        const { [STORAGE_PROVISIONER]: provisioner, [SELECTED_NODE]: node } = metadata?.annotations ?? {};
        if (provisioner !== LOCAL_PATH_PROVISIONER || node === undefined || spec?.volumeName) return;
        // The volume may just be created: it is reclaimed then, and has its directory until that.
        queue.addAfter(`${DIRECTORY}${node}/pvc-${metadata?.uid}`, ORPHAN_DELAY_MS);
      },
    }),
  );
  subscriptions.defer(
    volumes.subscribe({
      put: ({ metadata, status }) => {
        if (metadata?.annotations?.[PROVISIONED_BY] !== LOCAL_PATH_PROVISIONER) return;
        if (status?.phase === "Released" || metadata.deletionTimestamp !== undefined) {
          queue.add(`${VOLUME}${metadata.name}`);
        }
      },
    }),
  );
  await waitForAbort(signal);
}
