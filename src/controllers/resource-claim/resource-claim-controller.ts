/**
 * The resource claim controller: creates the claims of pods from templates, reserves claims for pods that were bound
 * without a scheduler, and releases and deletes the claims that no pod uses any more.
 */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { betaResourceClaimKind, betaResourceClaimTemplateKind } from "../../api/resource/flat-versions/kinds.ts";
import type { FlatResourceClaim } from "../../api/resource/flat-versions/schemas.ts";
import { explainForeignClaim, type PodClaim, podConsumer, resolvePodClaim } from "../../api/resource/pod-claims.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { type ControllerDeps, isFeatureEnabled } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { controllerOf, keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { messageOf } from "../workload/pod-control.ts";
import { ClaimMetrics } from "./claim-metrics.ts";
import { DeletedUids } from "./deleted-uids.ts";
import { explainDisabledTemplate, makeGeneratedClaim, POD_CLAIM_ANNOTATION } from "./generated-claim.ts";
import { isPodDone, listClaimNames, needsReservation, needsWork } from "./pod-needs.ts";
import { releaseClaim } from "./release-claim.ts";

const WORKERS = 50;
const FIELD_MANAGER = "ResourceClaimController";
const POD = "pod:";
const CLAIM = "claim:";

export async function runResourceClaimController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const pods = informers.of(podKind);
  const claims = informers.of(betaResourceClaimKind);
  const templates = informers.of(betaResourceClaimTemplateKind);
  const features = {
    adminAccess: isFeatureEnabled(deps, "DRAAdminAccess"),
    prioritizedList: isFeatureEnabled(deps, "DRAPrioritizedList"),
  };
  const metrics = new ClaimMetrics(deps.registry);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "resource_claim" });
  const findClaim = (name: string, namespace: string): FlatResourceClaim | undefined => claims.get(name, namespace);
  /** The keys of pods by the key of a claim that they use. */
  const users = new Map<string, Set<string>>();
  /** Claims of pods by the UID of the pod, as far as the informer has not delivered them. */
  const created = new Map<string, readonly FlatResourceClaim[]>();
  const deletedUids = new DeletedUids();

  async function syncPod(key: string, stopping: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const pod = pods.get(name, namespace);
    if (pod === undefined || pod.metadata?.deletionTimestamp !== undefined) return;
    const generated = new Map<string, string>();
    for (const podClaim of pod.spec?.resourceClaims ?? []) {
      try {
        const claim = await ensureClaim(pod, podClaim, stopping);
        if (claim !== undefined) generated.set(podClaim.name, claim);
      } catch (error) {
        stopping.throwIfAborted();
        const message = `PodResourceClaim ${podClaim.name}: ${messageOf(error)}`;
        recorder.record(objectReference(pod), "Warning", "FailedResourceClaimCreation", message);
        throw new Error(`pod ${key}, ${message}`, { cause: error });
      }
    }
    if (generated.size > 0) await writeNames(pod, generated, stopping);
    // The scheduler reserves the claims of pods without a node.
    if (!pod.spec?.nodeName) return;
    for (const podClaim of pod.spec.resourceClaims ?? []) {
      const resolved = resolvePodClaim(pod, podClaim);
      if (resolved.problem !== undefined) throw new Error(resolved.problem);
      if (resolved.name === undefined) continue;
      const claim = findClaim(resolved.name, namespace);
      if (claim === undefined) return;
      const problem = resolved.isOwned ? explainForeignClaim(pod, claim) : undefined;
      if (problem !== undefined) throw new Error(problem);
      if (needsReservation(pod, claim)) await reserve(pod, claim, stopping);
    }
  }

  /** The name of a claim that the pod's status lacks; undefined if nothing changes. */
  async function ensureClaim(pod: Pod, podClaim: PodClaim, stopping: AbortSignal): Promise<string | undefined> {
    const namespace = pod.metadata?.namespace ?? "";
    const resolved = resolvePodClaim(pod, podClaim);
    if (resolved.problem !== undefined && !resolved.isPending) {
      throw new Error(`checking for claim before creating it: ${resolved.problem}`);
    }
    if (resolved.problem === undefined) {
      if (resolved.name === undefined) return undefined;
      const claim = findClaim(resolved.name, namespace);
      if (claim !== undefined && (!resolved.isOwned || explainForeignClaim(pod, claim) === undefined)) return undefined;
    }
    const templateName = podClaim.resourceClaimTemplateName;
    if (templateName === undefined) return undefined;
    const existing = findGenerated(pod, podClaim.name);
    if (existing !== undefined) return existing.metadata?.name;
    const template = templates.get(templateName, namespace);
    if (template === undefined) {
      const why = `resourceclaimtemplate.resource.k8s.io "${templateName}" not found`;
      throw new Error(`resource claim template "${templateName}": ${why}`);
    }
    const problem = explainDisabledTemplate(template, features);
    if (problem !== undefined) throw new Error(problem);
    metrics.recordCreationAttempt();
    try {
      const claim = await client.create(betaResourceClaimKind, makeGeneratedClaim(pod, podClaim, template), stopping);
      const uid = pod.metadata?.uid ?? "";
      created.set(uid, [...(created.get(uid) ?? []), claim]);
      log.v(4)?.info("Created ResourceClaim", { claim: keyOf(claim), pod: keyOf(pod) });
      return claim.metadata?.name;
    } catch (error) {
      metrics.recordCreationFailure();
      throw new Error(`create ResourceClaim : ${messageOf(error)}`, { cause: error });
    }
  }

  /** A claim of this pod that its status does not show: the write of the status has failed, or is not delivered yet. */
  function findGenerated({ metadata }: Pod, podClaimName: string): FlatResourceClaim | undefined {
    const uid = metadata?.uid ?? "";
    const isGenerated = (claim: FlatResourceClaim): boolean =>
      claim.metadata?.annotations?.[POD_CLAIM_ANNOTATION] === podClaimName;
    for (const key of owned.get(uid) ?? []) {
      const { namespace, name } = splitKey(key);
      const claim = findClaim(name, namespace);
      if (claim !== undefined && isGenerated(claim)) return claim;
    }
    return created.get(uid)?.find(isGenerated);
  }

  async function writeNames(pod: Pod, generated: ReadonlyMap<string, string>, stopping: AbortSignal): Promise<void> {
    const { name = "", namespace = "" } = pod.metadata ?? {};
    const resourceClaimStatuses = [...generated].map(([claim, resourceClaimName]) => ({
      name: claim,
      resourceClaimName,
    }));
    const patch = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, status: { resourceClaimStatuses } };
    const query = { fieldManager: FIELD_MANAGER, force: true };
    try {
      const options = { subresource: "status", query, signal: stopping };
      await client.patch(podKind, { name, namespace }, "apply", patch, options);
    } catch (error) {
      const what = `update pod ${namespace}/${name} ResourceClaimStatuses`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    }
  }

  async function reserve(pod: Pod, claim: FlatResourceClaim, stopping: AbortSignal): Promise<void> {
    const reservedFor = [...(claim.status?.reservedFor ?? []), podConsumer(pod)];
    const next = { ...claim, status: { ...claim.status, reservedFor } };
    try {
      await client.updateStatus(betaResourceClaimKind, next, stopping);
    } catch (error) {
      throw new Error(`reserve claim ${keyOf(claim)} for pod: ${messageOf(error)}`, { cause: error });
    }
  }

  await using queue = createControllerQueue(deps, {
    name: "resource_claim",
    workers: WORKERS,
    backoff: RATE_LIMITER,
    sync: async (key, stopping) => {
      if (key.startsWith(POD)) return await syncPod(key.slice(POD.length), stopping);
      const { namespace, name } = splitKey(key.slice(CLAIM.length));
      const claim = claims.get(name, namespace);
      if (claim !== undefined)
        await releaseClaim(claim, { client, pods, isGone: (uid) => deletedUids.has(uid) }, stopping);
    },
    onError: (key, error) => log.v(2)?.info("Failed to sync, will retry", { key, error: messageOf(error) }),
  });

  const podChanged = (pod: Pod, isDeleted: boolean): void => {
    const { namespace = "" } = pod.metadata ?? {};
    if (isDeleted || isPodDone(pod)) {
      for (const name of listClaimNames(pod)) queue.add(`${CLAIM}${namespace}/${name}`);
    }
    if (!isDeleted && needsWork(pod, findClaim)) queue.add(`${POD}${keyOf(pod)}`);
  };
  /** The keys of claims by the UID of the pod that owns them. */
  const owned = new Map<string, Set<string>>();
  const claimChanged = (claim: FlatResourceClaim): void => {
    const key = keyOf(claim);
    for (const user of users.get(key) ?? []) {
      const { namespace, name } = splitKey(user);
      const pod = pods.get(name, namespace);
      if (pod !== undefined && needsWork(pod, findClaim)) queue.add(`${POD}${user}`);
    }
  };

  await waitForCacheSync([pods, claims, templates], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    claims.subscribe({
      put: (claim, before) => {
        metrics.recordClaimChange(before, claim);
        const owner = controllerOf(claim);
        if (owner?.kind === "Pod") {
          addTo(owned, owner.uid, keyOf(claim));
          forget(created, owner.uid, claim);
        }
        // A pod in `reservedFor` may be gone already.
        queue.add(`${CLAIM}${keyOf(claim)}`);
        claimChanged(claim);
      },
      delete: (claim) => {
        metrics.recordClaimChange(claim, undefined);
        const owner = controllerOf(claim);
        if (owner !== undefined) removeFrom(owned, owner.uid, keyOf(claim));
        claimChanged(claim);
      },
    }),
  );
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => {
        if ((pod.spec?.resourceClaims ?? []).length === 0) return;
        if (before !== undefined) unlink(before);
        for (const name of listClaimNames(pod)) addTo(users, `${pod.metadata?.namespace ?? ""}/${name}`, keyOf(pod));
        if (before !== undefined && before.metadata?.uid !== pod.metadata?.uid) removePod(before);
        podChanged(pod, false);
      },
      delete: (pod) => {
        if ((pod.spec?.resourceClaims ?? []).length === 0) return;
        unlink(pod);
        removePod(pod);
      },
    }),
  );
  await waitForAbort(signal);

  function unlink(pod: Pod): void {
    for (const name of listClaimNames(pod)) removeFrom(users, `${pod.metadata?.namespace ?? ""}/${name}`, keyOf(pod));
  }

  function removePod(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    deletedUids.add(uid);
    created.delete(uid);
    podChanged(pod, true);
  }
}

function addTo(index: Map<string, Set<string>>, key: string, value: string): void {
  const values = index.get(key) ?? new Set();
  index.set(key, values.add(value));
}

function removeFrom(index: Map<string, Set<string>>, key: string, value: string): void {
  const values = index.get(key);
  values?.delete(value);
  if (values?.size === 0) index.delete(key);
}

function forget(created: Map<string, readonly FlatResourceClaim[]>, uid: string, claim: FlatResourceClaim): void {
  const left = created.get(uid)?.filter(({ metadata }) => metadata?.uid !== claim.metadata?.uid) ?? [];
  if (left.length === 0) created.delete(uid);
  else created.set(uid, left);
}
