/** Writes allocations and reservations of claims. */

import type { Pod } from "../../../api/core/pod/schema.ts";
import { betaResourceClaimKind } from "../../../api/resource/flat-versions/kinds.ts";
import type { FlatResourceClaim } from "../../../api/resource/flat-versions/schemas.ts";
import { CLAIM_FINALIZER, podConsumer } from "../../../api/resource/pod-claims.ts";
import type { AllocationResult } from "../../../api/resource/schemas.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import type { Clock } from "../../../std/time/clock.ts";

export interface BindClaimDeps {
  readonly client: Client;
  readonly clock: Clock;
}

/** client-go's default for retries after a conflict. */
const ATTEMPTS_MAX = 5;
const RETRY_MS = 10;

/** Returns the written claim. Rejects with Kubernetes' text. */
export async function bindClaim(
  pod: Pod,
  claim: FlatResourceClaim,
  allocation: AllocationResult | undefined,
  { client, clock }: BindClaimDeps,
  signal: AbortSignal,
): Promise<FlatResourceClaim> {
  const { name = "", namespace = "" } = claim.metadata ?? {};
  const key = `${namespace}/${name}`;
  let current = claim;
  for (let attempt = 1; ; attempt++) {
    try {
      return await writeOnce(pod, current, allocation, client, signal);
    } catch (error) {
      const isConflict = error instanceof Error && isConflictError(error.cause ?? error);
      if (!isConflict || attempt === ATTEMPTS_MAX) throw error;
      await clock.sleep(RETRY_MS, signal);
      current = await client.get(betaResourceClaimKind, { name, namespace }, signal).catch((cause: unknown) => {
        throw wrap(`get updated claim ${key} after conflict`, cause);
      });
    }
  }
}

async function writeOnce(
  pod: Pod,
  claim: FlatResourceClaim,
  allocation: AllocationResult | undefined,
  client: Client,
  signal: AbortSignal,
): Promise<FlatResourceClaim> {
  const key = `${claim.metadata?.namespace ?? ""}/${claim.metadata?.name ?? ""}`;
  if (claim.metadata?.deletionTimestamp !== undefined) throw new Error(`claim ${key} got deleted in the meantime`);
  let current = claim;
  if (allocation !== undefined) {
    if (claim.status?.allocation !== undefined) {
      throw new Error(`claim ${key} got allocated elsewhere in the meantime`);
    }
    const { finalizers = [] } = claim.metadata ?? {};
    if (!finalizers.includes(CLAIM_FINALIZER)) {
      const metadata = { ...claim.metadata, finalizers: [...finalizers, CLAIM_FINALIZER] };
      current = await client.update(betaResourceClaimKind, { ...claim, metadata }, signal).catch((cause: unknown) => {
        throw wrap(`add finalizer to claim ${key}`, cause);
      });
    }
  }
  const status = {
    ...current.status,
    ...(allocation === undefined ? {} : { allocation }),
    reservedFor: [...(current.status?.reservedFor ?? []), podConsumer(pod)],
  };
  return await client.updateStatus(betaResourceClaimKind, { ...current, status }, signal).catch((cause: unknown) => {
    const what = allocation === undefined ? "reservation" : "allocation and reservation";
    throw wrap(`add ${what} to claim ${key}`, cause);
  });
}

function isConflictError(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 409;
}

function wrap(what: string, cause: unknown): Error {
  return new Error(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}
