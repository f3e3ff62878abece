/**
 * Charges requests to quotas atomically. Concurrent requests of a namespace wait and form a batch: they are checked one
 * after the other against the same quotas, and the result is written once. A conflicting write restarts the check.
 */

import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import type { ResourceQuota } from "../../../api/core/resource-quota/schema.ts";
import { conflict, StatusError } from "../../../api/status.ts";
import { TimeSlice } from "../../../std/async/time-slice.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type AdmissionRequest, metadataOf } from "../../chain/attributes.ts";
import type { ObjectReader, ObjectWriter } from "../../chain/plugin.ts";
import { checkRequest } from "./check.ts";
import type { LimitedResource } from "./configuration.ts";
import type { Evaluator } from "./evaluator.ts";

/** As in Kubernetes. */
const WAIT_MS = 10_000;
/** Conflicts are rare: other servers and the resource quota controller also write quotas. */
const ATTEMPTS = 10;

export interface ChargerDeps {
  readonly reader: ObjectReader;
  readonly writer: ObjectWriter;
  readonly clock: Clock;
  readonly stopping: AbortSignal;
  readonly limited: readonly LimitedResource[];
}

interface Waiter {
  readonly request: AdmissionRequest;
  readonly evaluator: Evaluator;
  settle(error?: unknown): void;
  isSettled: boolean;
}

export class QuotaCharger {
  readonly #deps: ChargerDeps;
  /** Waiting requests of the namespaces that are being worked on, bounded by the number of requests in flight. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(deps: ChargerDeps) {
    this.#deps = deps;
  }

  /** Resolves when the request fits and is charged. Rejects with a `StatusError`. */
  charge(request: AdmissionRequest, evaluator: Evaluator): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#deps.clock.timer(WAIT_MS, () => waiter.settle(newTimeout()));
      const waiter: Waiter = {
        request,
        evaluator,
        isSettled: false,
        settle(error) {
          timer.cancel();
          this.isSettled = true;
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      const queue = this.#waiting.get(request.namespace);
      if (queue !== undefined) queue.push(waiter);
      else void this.#processQueue(request.namespace, waiter);
    });
  }

  async #processQueue(namespace: string, first: Waiter): Promise<void> {
    const queue = [first];
    this.#waiting.set(namespace, queue);
    while (queue.length > 0) {
      const batch = queue.splice(0).filter(({ isSettled }) => !isSettled);
      try {
        await this.#chargeBatch(namespace, batch);
      } catch (error) {
        for (const waiter of batch) if (!waiter.isSettled) waiter.settle(error);
      }
    }
    this.#waiting.delete(namespace);
  }

  async #chargeBatch(namespace: string, batch: readonly Waiter[]): Promise<void> {
    const { reader, limited, stopping } = this.#deps;
    let waiting = batch;
    let quotas = await reader.list(resourceQuotaKind, namespace, stopping);
    for (let attempt = 1; waiting.length > 0; attempt++) {
      const { charged, after } = await checkBatch(quotas, waiting, limited);
      const conflicts = await this.#write(quotas, after);
      if (conflicts.length === 0 || charged.length === 0) {
        for (const waiter of charged) waiter.settle();
        return;
      }
      if (attempt === ATTEMPTS) throw newConflict(conflicts[0]!);
      // The quotas that were written include these requests; only those with a conflict are checked again.
      waiting = charged.filter(({ isSettled }) => !isSettled);
      const latest = await reader.list(resourceQuotaKind, namespace, stopping);
      quotas = latest.filter(({ metadata }) => conflicts.includes(metadata?.name ?? ""));
    }
  }

  /** Resolves with the names of the quotas that changed since they were read. */
  async #write(before: readonly ResourceQuota[], after: readonly ResourceQuota[]): Promise<readonly string[]> {
    const { writer, stopping } = this.#deps;
    const conflicts: string[] = [];
    for (const [i, quota] of after.entries()) {
      if (quota === before[i]) continue;
      const { namespace = "", name = "", resourceVersion } = metadataOf(quota);
      const update = (present: ResourceQuota): ResourceQuota => {
        if (metadataOf(present).resourceVersion !== resourceVersion) throw new QuotaConflict();
        return { ...present, status: quota.status };
      };
      try {
        await writer.update(resourceQuotaKind, { namespace, name, subresource: "status" }, update, stopping);
      } catch (error) {
        const isGone = error instanceof StatusError && error.status.code === 404;
        if (!(error instanceof QuotaConflict) && !isGone) throw error;
        conflicts.push(name);
      }
    }
    return conflicts;
  }
}

class QuotaConflict extends Error {}

/** Checks each request against the usage that includes the ones before it. Settles requests that need no write. */
async function checkBatch(
  quotas: readonly ResourceQuota[],
  waiters: readonly Waiter[],
  limited: readonly LimitedResource[],
): Promise<{ readonly charged: readonly Waiter[]; readonly after: readonly ResourceQuota[] }> {
  let after = quotas;
  const slice = new TimeSlice();
  const charged: Waiter[] = [];
  for (const waiter of waiters) {
    const { request, evaluator } = waiter;
    if (slice.isOver) await slice.end();
    try {
      const next = checkRequest(after, request, evaluator, limited);
      if (request.dryRun || next.every((quota, i) => quota === after[i])) waiter.settle();
      else {
        after = next;
        charged.push(waiter);
      }
    } catch (error) {
      waiter.settle(error);
    }
  }
  return { charged, after };
}

function newConflict(name: string): StatusError {
  const reason = "the object has been modified; please apply your changes to the latest version and try again";
  return conflict({ group: "", resource: resourceQuotaKind.plural, name }, reason);
}

function newTimeout(): StatusError {
  const reason = "resource quota evaluation timed out";
  return new StatusError(500, "InternalError", `Internal error occurred: ${reason}`, {
    details: { causes: [{ message: reason }] },
  });
}
