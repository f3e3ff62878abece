/** The Deployment controller: moves pods from old replica sets to the one of the current template. */

import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { claimObjects } from "../workload/claim-objects.ts";
import { controllerOf, keyOf, splitKey } from "../workload/object-keys.ts";
import { OwnedObjects } from "../workload/owned-objects.ts";
import { DeploymentSync } from "./deployment-sync.ts";
import { syncDeployment } from "./rollout.ts";

export async function runDeploymentController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const component = "deployment-controller";
  await using recorder = createEventRecorder({ client, clock, random, log, component, qps: 0 });
  const deployments = informers.of(deploymentKind);
  const replicaSets = informers.of(replicaSetKind);
  const pods = informers.of(podKind);
  using setsByOwner = new OwnedObjects(replicaSets);
  using podsByOwner = new OwnedObjects(pods);
  await using queue = createControllerQueue(deps, {
    name: "deployment",
    workers: 5,
    backoff: RATE_LIMITER,
    sync: async (key, stopping) => await syncKey(key, stopping),
    onError: (key, error) => {
      // A conflict is expected: the informer is behind the writes of this or another controller.
      const level = isNotFoundOrConflict(error) ? 4 : 2;
      log.v(level)?.info("Failed to sync deployment, will retry", { key, error: String(error) });
    },
  });
  using deadlines = new KeyTimers(clock, (key) => queue.add(key));

  const syncKey = async (key: string, stopping: AbortSignal): Promise<void> => {
    const { namespace, name } = splitKey(key);
    const deployment = deployments.get(name, namespace);
    if (deployment === undefined) {
      deadlines.delete(key);
      return;
    }
    const left = await syncOne(deployment, stopping);
    if (left === undefined) deadlines.delete(key);
    else deadlines.set(key, left);
  };

  const syncOne = async (deployment: Deployment, stopping: AbortSignal): Promise<number | undefined> => {
    const sync = new DeploymentSync(deployment, { client, recorder, now: clock.now(), signal: stopping });
    const selector = requirementsOf(deployment.spec?.selector ?? {});
    if (selector.length === 0) {
      await ignoreSelectingAll(sync);
      return undefined;
    }
    const sets = await claimObjects(setsByOwner.ownedOrOrphaned(deployment), {
      client,
      ownerKind: deploymentKind,
      owner: deployment,
      kind: replicaSetKind,
      selector,
      signal: stopping,
    });
    return await syncDeployment(sync, sets, ({ metadata }) => podsByOwner.owned(metadata?.uid ?? ""));
  };

  const ownerOf = (set: ReplicaSet): Deployment | undefined => {
    const controller = controllerOf(set);
    if (controller?.kind !== deploymentKind.kind) return undefined;
    const owner = deployments.get(controller.name, set.metadata?.namespace);
    return owner?.metadata?.uid === controller.uid ? owner : undefined;
  };
  const addOwner = (set: ReplicaSet): void => {
    const owner = ownerOf(set);
    if (owner !== undefined) queue.add(keyOf(owner));
  };
  const addMatching = ({ metadata }: ReplicaSet): void => {
    for (const deployment of deployments.list()) {
      const requirements = requirementsOf(deployment.spec?.selector ?? {});
      const isNear = deployment.metadata?.namespace === metadata?.namespace && requirements.length > 0;
      if (isNear && matchesLabels(requirements, metadata?.labels)) queue.add(keyOf(deployment));
    }
  };
  /** A recreation goes on when the last pod is gone. */
  const podDeleted = (pod: Pod): void => {
    const controller = controllerOf(pod);
    if (controller?.kind !== replicaSetKind.kind) return;
    const set = replicaSets.get(controller.name, pod.metadata?.namespace);
    const owner = set === undefined ? undefined : ownerOf(set);
    if (owner?.spec?.strategy?.type === "Recreate") queue.add(keyOf(owner));
  };

  await waitForCacheSync([deployments, replicaSets, pods], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(pods.subscribe({ delete: podDeleted }));
  subscriptions.defer(
    replicaSets.subscribe({
      put: (set, before) => {
        if (before !== undefined && controllerOf(before)?.uid !== controllerOf(set)?.uid) addOwner(before);
        if (controllerOf(set) === undefined) addMatching(set);
        else addOwner(set);
      },
      delete: addOwner,
    }),
  );
  const add = (deployment: Deployment): void => queue.add(keyOf(deployment));
  subscriptions.defer(deployments.subscribe({ put: add, delete: add }));
  await waitForAbort(signal);
}

async function ignoreSelectingAll(sync: DeploymentSync): Promise<void> {
  sync.recordSelectingAll();
  const { metadata, status } = sync.deployment;
  await sync.writeStatus({ ...status, observedGeneration: metadata?.generation });
}
