/**
 * Keeps in the status of every quota what is used in its namespace. The API server charges what is made; what goes is
 * counted out here, and what was charged for nothing.
 */

import { resourceQuotaKind } from "../../api/core/resource-quota/kind.ts";
import type { ResourceQuota } from "../../api/core/resource-quota/schema.ts";
import {
  filterResources,
  formatResourceList,
  parseResourceList,
  type ResourceQuantities,
} from "../../api/core/resources/quantities.ts";
import { StatusError } from "../../api/status.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";
import { type CountedKind, countedBuiltin, kindsOf, usageOf } from "./counted-kinds.ts";
import { UsageWatches } from "./quota-monitor.ts";

/** The watches follow all quotas. */
const ALL = "";
/** All quotas are counted anew this often, as Kubernetes does by default. */
const RESYNC_MS = 300_000;
/** Deletions come in crowds. */
const GATHER_MS = 100;
/**
 * What was charged is stored a moment later. Counts that are lower than the charge are only believed when nothing was
 * charged for this long before they were made.
 */
const SETTLE_MS = 500;
/** Somebody else wrote the quota meanwhile; what is charged all the time is not full. */
const AGAIN_MS = 500;

export async function runResourceQuota(deps: ControllerDeps): Promise<void> {
  const { observer: client, clock, random, log, signal } = deps;
  const builtin = countedBuiltin(deps.kinds);
  await using quotas = startInformer({ client, clock, random, log, kind: resourceQuotaKind }, signal);
  await using watches = new UsageWatches(deps, (namespace, { evaluator }) => {
    for (const quota of quotas.list()) {
      if (namespace !== "" && quota.metadata?.namespace !== namespace) continue;
      if (limitedBy(quota).some((resource) => evaluator.counts(resource))) queue.addAfter(keyOf(quota), GATHER_MS);
    }
  });
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 5,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (key, stopping) => {
      if (key === ALL) {
        const limited = new Set([...quotas.list()].flatMap(limitedBy));
        return await watches.follow(await kindsOf([...limited], builtin, client, stopping));
      }
      const [namespace = "", name = ""] = key.split("/");
      if (await recount(deps, { namespace, name }, builtin, stopping)) return;
      queue.addAfter(key, AGAIN_MS * (1 + random.fraction()));
    },
    onError: (key, error) => log.error("Cannot count what a quota limits; trying again", error, { quota: key }),
  });
  const unsubscribe = quotas.subscribe({
    put: (quota, previous) => {
      // What only the status tells was written here, or charged.
      const isCounted = deepEqual(quota.spec?.hard ?? {}, quota.status?.hard ?? {});
      if (previous !== undefined && isCounted) return;
      queue.add(ALL);
      queue.add(keyOf(quota));
    },
    delete: (quota) => {
      queue.forget(keyOf(quota));
      queue.add(ALL);
    },
  });
  using _ = { [Symbol.dispose]: unsubscribe };
  while (!signal.aborted) {
    await Promise.race([clock.sleep(RESYNC_MS, signal), waitForAbort(signal)]).catch(() => {});
    if (signal.aborted) break;
    // Custom kinds may have come since.
    queue.add(ALL);
    for (const quota of quotas.list()) queue.add(keyOf(quota));
  }
}

function keyOf({ metadata }: ResourceQuota): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

function limitedBy({ spec }: ResourceQuota): readonly string[] {
  return Object.keys(spec?.hard ?? {});
}

/** Resolves with whether that is settled; false where others write the quota all the time. */
async function recount(
  deps: ControllerDeps,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  builtin: readonly CountedKind[],
  signal: AbortSignal,
): Promise<boolean> {
  const { client, observer, clock } = deps;
  const query = { namespace, fieldSelector: `metadata.name=${name}` };
  const [quota] = (await observer.list(resourceQuotaKind, query, signal)).items;
  if (quota === undefined) return true;
  const kinds = await kindsOf(limitedBy(quota), builtin, observer, signal);
  let used = await usedBy(quota, kinds, deps, signal);
  if (isLower(used, parseResourceList(quota.status?.used))) {
    await clock.sleep(SETTLE_MS, signal);
    used = await usedBy(quota, kinds, deps, signal);
  }
  const hard = parseResourceList(quota.spec?.hard);
  const status = {
    hard: formatResourceList(hard),
    used: formatResourceList(filterResources(used, (resource) => hard.has(resource))),
  };
  if (deepEqual(status, { hard: quota.status?.hard ?? {}, used: quota.status?.used ?? {} })) return true;
  try {
    await client.updateStatus(resourceQuotaKind, { ...quota, status }, signal);
    return true;
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 404) return true;
    if (error instanceof StatusError && error.status.code === 409) return false;
    throw error;
  }
}

/** What nobody here counts stays as others say. */
async function usedBy(
  quota: ResourceQuota,
  kinds: readonly CountedKind[],
  { observer }: ControllerDeps,
  signal: AbortSignal,
): Promise<ResourceQuantities> {
  return new Map([...parseResourceList(quota.status?.used), ...(await usageOf(quota, kinds, observer, signal))]);
}

function isLower(counted: ResourceQuantities, charged: ResourceQuantities): boolean {
  return [...charged].some(([resource, { nanos }]) => (counted.get(resource)?.nanos ?? nanos) < nanos);
}
