/**
 * The resource quota controller: recalculates the usage in the status of quotas. The admission plugin charges new
 * objects; this controller subtracts deleted ones and charges for requests that failed.
 */

import type { Evaluator } from "../../admission/plugins/resource-quota/evaluator.ts";
import { resourceQuotaKind } from "../../api/core/resource-quota/kind.ts";
import type { ResourceQuota } from "../../api/core/resource-quota/schema.ts";
import {
  filterResources,
  formatResourceList,
  parseResourceList,
  type ResourceQuantities,
} from "../../api/core/resources/quantities.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import {
  type CalculatedUsage,
  type CountedKind,
  calculateUsage,
  countedBuiltinKinds,
  findCountedKinds,
} from "./counted-kinds.ts";
import { QuotaMonitor } from "./quota-monitor.ts";

/** The key for updating the watches. */
const MONITOR_KEY = "";
/** Delay after a deletion, since deletions come in groups. */
const DELETION_DELAY_MS = 100;
/**
 * A charged object is stored after the charge. A usage below the charged one is only written if it is the same after
 * this delay.
 */
const SETTLE_MS = 500;
/** Delay after a conflicting write, since admission charges the quota too. */
const CONFLICT_DELAY_MS = 500;

export async function runResourceQuotaController(deps: ControllerDeps): Promise<void> {
  const { observer: client, clock, random, log, signal } = deps;
  const builtin = countedBuiltinKinds(deps.kinds);
  await using quotas = startInformer({ client, clock, random, log, kind: resourceQuotaKind }, signal);
  const counted = new CountedQuotas();
  await using watches = new QuotaMonitor(deps, (namespace, { evaluator }) => {
    for (const quota of quotas.list()) {
      if (namespace !== "" && quota.metadata?.namespace !== namespace) continue;
      if (counted.has(quota, evaluator)) queue.addAfter(keyOf(quota), DELETION_DELAY_MS);
    }
  });
  await using queue = createControllerQueue(deps, {
    name: "resourcequota_primary",
    workers: 5,
    sync: syncKey,
    onError: (key, error) => log.error("Failed to sync resource quota, will retry", error, { quota: key }),
  });

  async function syncKey(key: string, stopping: AbortSignal): Promise<void> {
    if (key === MONITOR_KEY) {
      const limited = new Set([...quotas.list()].flatMap(limitedResources));
      return await watches.setKinds(await findCountedKinds([...limited], builtin, client, stopping));
    }
    const [namespace = "", name = ""] = key.split("/");
    if (await syncQuota(deps, { namespace, name }, builtin, stopping)) return;
    queue.addAfter(key, CONFLICT_DELAY_MS * (1 + random.fraction()));
  }

  const unsubscribe = quotas.subscribe({
    put: (quota, previous) => {
      // Updates of the status come from this controller and from admission.
      const isCounted = deepEqual(quota.spec?.hard ?? {}, quota.status?.hard ?? {});
      if (previous !== undefined && isCounted) return;
      queue.add(MONITOR_KEY);
      queue.add(keyOf(quota));
    },
    delete: (quota) => {
      queue.forget(keyOf(quota));
      queue.add(MONITOR_KEY);
    },
  });
  using _ = { [Symbol.dispose]: unsubscribe };
  while (!signal.aborted) {
    await Promise.race([clock.sleep(deps.options.quotaSyncPeriodMs, signal), waitForAbort(signal)]).catch(() => {});
    if (signal.aborted) break;
    // New custom kinds may be served.
    queue.add(MONITOR_KEY);
    for (const quota of quotas.list()) queue.add(keyOf(quota));
  }
}

function keyOf({ metadata }: ResourceQuota): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** Whether quotas count objects of an evaluator: computed once, since a quota may limit thousands. */
class CountedQuotas {
  readonly #byQuota = new WeakMap<ResourceQuota, Map<Evaluator, boolean>>();

  has(quota: ResourceQuota, evaluator: Evaluator): boolean {
    let known = this.#byQuota.get(quota);
    if (known === undefined) {
      known = new Map();
      this.#byQuota.set(quota, known);
    }
    let counts = known.get(evaluator);
    if (counts === undefined) {
      counts = limitedResources(quota).some((resource) => evaluator.counts(resource));
      known.set(evaluator, counts);
    }
    return counts;
  }
}

function limitedResources({ spec }: ResourceQuota): readonly string[] {
  return Object.keys(spec?.hard ?? {});
}

/**
 * Returns false after a conflict, if the quota must be synced again. Rejects if a kind cannot be listed, after it has
 * written the usage of the others.
 */
async function syncQuota(
  deps: ControllerDeps,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  builtin: readonly CountedKind[],
  signal: AbortSignal,
): Promise<boolean> {
  const { client, observer, clock } = deps;
  const query = { namespace, fieldSelector: `metadata.name=${name}` };
  const [quota] = (await observer.list(resourceQuotaKind, query, signal)).items;
  if (quota === undefined) return true;
  // Each step reads all resources that the quota limits, which may be thousands.
  const slice = new TimeSlice();
  await slice.yield();
  const kinds = await findCountedKinds(limitedResources(quota), builtin, observer, signal);
  await slice.yield();
  let { used, failure } = await currentUsage(quota, kinds, deps, signal);
  await slice.yield();
  if (isLower(used, parseResourceList(quota.status?.used))) {
    await clock.sleep(SETTLE_MS, signal);
    ({ used, failure } = await currentUsage(quota, kinds, deps, signal));
  }
  await slice.yield();
  const isWritten = await writeStatus(client, quota, used, slice, signal);
  if (failure !== undefined) throw failure.error;
  return isWritten;
}

/** Returns false after a conflict. */
async function writeStatus(
  client: Client,
  quota: ResourceQuota,
  used: ResourceQuantities,
  slice: TimeSlice,
  signal: AbortSignal,
): Promise<boolean> {
  const limits = parseResourceList(quota.spec?.hard);
  await slice.yield();
  const hard = formatResourceList(limits);
  await slice.yield();
  const status = { hard, used: formatResourceList(filterResources(used, (resource) => limits.has(resource))) };
  await slice.yield();
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

/** Resources without an evaluator, and those that cannot be counted, keep their usage. */
async function currentUsage(
  quota: ResourceQuota,
  kinds: readonly CountedKind[],
  { observer }: ControllerDeps,
  signal: AbortSignal,
): Promise<CalculatedUsage> {
  const { used, failure } = await calculateUsage(quota, kinds, observer, signal);
  return { used: new Map([...parseResourceList(quota.status?.used), ...used]), failure };
}

function isLower(counted: ResourceQuantities, charged: ResourceQuantities): boolean {
  return [...charged].some(([resource, { nanos }]) => (counted.get(resource)?.nanos ?? nanos) < nanos);
}
