/** Removes reservations of pods that are gone, releases the devices of unused claims, and deletes generated ones. */
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { betaResourceClaimKind } from "../../api/resource/flat-versions/kinds.ts";
import type { FlatResourceClaim } from "../../api/resource/flat-versions/schemas.ts";
import { CLAIM_FINALIZER } from "../../api/resource/pod-claims.ts";
import type { Client } from "../../client/client.ts";
import { statusCodeOf } from "../api-errors.ts";
import { keyOf } from "../workload/object-keys.ts";
import { messageOf } from "../workload/pod-control.ts";
import { isPodDone } from "./pod-needs.ts";

export interface ReleaseClaimDeps {
  readonly client: Client;
  readonly pods: { get(name: string, namespace?: string): Pod | undefined };
  /** Whether the pod with the UID was deleted. */
  readonly isGone: (uid: string) => boolean;
}

type Consumer = NonNullable<NonNullable<FlatResourceClaim["status"]>["reservedFor"]>[number];

export async function releaseClaim(
  claim: FlatResourceClaim,
  deps: ReleaseClaimDeps,
  signal: AbortSignal,
): Promise<void> {
  const { client } = deps;
  const reserved = claim.status?.reservedFor ?? [];
  const valid: Consumer[] = [];
  for (const consumer of reserved) if (await isValid(claim, consumer, deps, signal)) valid.push(consumer);
  const hasFinalizer = (claim.metadata?.finalizers ?? []).includes(CLAIM_FINALIZER);
  if (valid.length < reserved.length) {
    // Not a patch: the update fails when the claim has changed since.
    const kept = valid.length === 0 && hasFinalizer ? withoutAllocation(claim) : claim;
    const next = { ...kept, status: { ...kept.status, reservedFor: valid } };
    const updated = await client.updateStatus(betaResourceClaimKind, next, signal);
    if (updated.status?.allocation === undefined) await removeFinalizer(updated, client, signal);
  } else if (hasFinalizer && claim.metadata?.deletionTimestamp !== undefined && valid.length === 0) {
    const isAllocated = claim.status?.allocation !== undefined;
    const released = isAllocated
      ? await client.updateStatus(betaResourceClaimKind, withoutAllocation(claim), signal)
      : claim;
    await removeFinalizer(released, client, signal);
  }
  if (valid.length === 0) await deleteGenerated(claim, deps, signal);
}

async function isValid(
  { metadata }: FlatResourceClaim,
  { apiGroup = "", resource, name, uid }: Consumer,
  { client, pods, isGone }: ReleaseClaimDeps,
  signal: AbortSignal,
): Promise<boolean> {
  if (apiGroup !== "" || resource !== "pods") {
    throw new Error(`unsupported ReservedFor entry: ${JSON.stringify({ apiGroup, resource, name, uid })}`);
  }
  if (isGone(uid)) return false;
  const namespace = metadata?.namespace;
  const known = pods.get(name, namespace);
  if (known !== undefined) return known.metadata?.uid === uid && !isPodDone(known);
  // The informer may not have delivered the pod yet.
  const found = await client.get(podKind, { name, namespace }, signal).catch((error: unknown) => {
    if (statusCodeOf(error) === 404) return undefined;
    throw error;
  });
  return found?.metadata?.uid === uid;
}

function withoutAllocation(claim: FlatResourceClaim): FlatResourceClaim {
  const { allocation: _, ...status } = claim.status ?? {};
  return { ...claim, status };
}

async function removeFinalizer(claim: FlatResourceClaim, client: Client, signal: AbortSignal): Promise<void> {
  const { finalizers = [] } = claim.metadata ?? {};
  if (!finalizers.includes(CLAIM_FINALIZER)) return;
  const metadata = { ...claim.metadata, finalizers: finalizers.filter((each) => each !== CLAIM_FINALIZER) };
  await client.update(betaResourceClaimKind, { ...claim, metadata }, signal);
}

/** A pod that has ended may stay for long, so that the garbage collector would keep its claims. */
async function deleteGenerated(
  claim: FlatResourceClaim,
  { client, pods }: ReleaseClaimDeps,
  signal: AbortSignal,
): Promise<void> {
  const { name = "", namespace, ownerReferences = [] } = claim.metadata ?? {};
  const owner = ownerReferences.find(
    ({ controller, apiVersion, kind }) => controller === true && apiVersion === "v1" && kind === "Pod",
  );
  const pod = owner === undefined ? undefined : pods.get(owner.name, namespace);
  if (pod === undefined || (pod.metadata?.uid === owner?.uid && !isPodDone(pod))) return;
  if (claim.metadata?.deletionTimestamp !== undefined) return;
  await client.delete(betaResourceClaimKind, { name, namespace }, {}, signal).catch((error: unknown) => {
    throw new Error(`delete claim ${keyOf(claim)}: ${messageOf(error)}`, { cause: error });
  });
}
