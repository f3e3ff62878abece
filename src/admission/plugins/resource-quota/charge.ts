/**
 * Charges requests to quotas, exactly once and never beyond them, however many come at once: those of a namespace that
 * wait are checked one after the other against the same state and written together, if nobody has written meanwhile.
 */

import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import type { ResourceQuota } from "../../../api/core/resource-quota/schema.ts";
import { conflict, StatusError } from "../../../api/status.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { metadataOf } from "../../chain/attributes.ts";
import type { AdmissionRequest, ObjectReader, ObjectWriter } from "../../chain/plugin.ts";
import { checkRequest } from "./check.ts";
import type { LimitedResource } from "./configuration.ts";
import type { Evaluator } from "./evaluator.ts";

/** As Kubernetes. */
const WAIT_MS = 10_000;
/** Others write a quota now and then: other servers, and the controller that counts anew. */
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

export class Charger {
  readonly #deps: ChargerDeps;
  /** By namespace, where somebody is at work. As many wait as requests are in flight. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(deps: ChargerDeps) {
    this.#deps = deps;
  }

  /** Resolves when the request fits and is charged. Rejects with a `StatusError`. */
  charge(request: AdmissionRequest, evaluator: Evaluator): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#deps.clock.timer(WAIT_MS, () => waiter.settle(late()));
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
      else void this.#work(request.namespace, waiter);
    });
  }

  async #work(namespace: string, first: Waiter): Promise<void> {
    const queue = [first];
    this.#waiting.set(namespace, queue);
    while (queue.length > 0) {
      const batch = queue.splice(0).filter(({ isSettled }) => !isSettled);
      try {
        await this.#settle(namespace, batch);
      } catch (error) {
        for (const waiter of batch) if (!waiter.isSettled) waiter.settle(error);
      }
    }
    this.#waiting.delete(namespace);
  }

  async #settle(namespace: string, batch: readonly Waiter[]): Promise<void> {
    const { reader, limited, stopping } = this.#deps;
    let waiting = batch;
    let quotas = await reader.list(resourceQuotaKind, namespace, stopping);
    for (let attempt = 1; waiting.length > 0; attempt++) {
      const { charged, after } = checkAll(quotas, waiting, limited);
      const overtaken = await this.#write(quotas, after);
      if (overtaken.length === 0 || charged.length === 0) {
        for (const waiter of charged) waiter.settle();
        return;
      }
      if (attempt === ATTEMPTS) throw overtakenError(overtaken[0]!);
      // What is written already has what these requests use: only the others are asked again.
      waiting = charged.filter(({ isSettled }) => !isSettled);
      const latest = await reader.list(resourceQuotaKind, namespace, stopping);
      quotas = latest.filter(({ metadata }) => overtaken.includes(metadata?.name ?? ""));
    }
  }

  /** Resolves with the names of those that somebody else has written since they were read. */
  async #write(before: readonly ResourceQuota[], after: readonly ResourceQuota[]): Promise<readonly string[]> {
    const { writer, stopping } = this.#deps;
    const overtaken: string[] = [];
    for (const [i, quota] of after.entries()) {
      if (quota === before[i]) continue;
      const { namespace = "", name = "", resourceVersion } = metadataOf(quota);
      const next = (present: ResourceQuota): ResourceQuota => {
        if (metadataOf(present).resourceVersion !== resourceVersion) throw new Overtaken();
        return { ...present, status: quota.status };
      };
      try {
        await writer.update(resourceQuotaKind, { namespace, name, subresource: "status" }, next, stopping);
      } catch (error) {
        const isGone = error instanceof StatusError && error.status.code === 404;
        if (!(error instanceof Overtaken) && !isGone) throw error;
        overtaken.push(name);
      }
    }
    return overtaken;
  }
}

class Overtaken extends Error {}

/** Each is checked against what those before it leave. Settles all that need not be written. */
function checkAll(
  quotas: readonly ResourceQuota[],
  waiters: readonly Waiter[],
  limited: readonly LimitedResource[],
): { readonly charged: readonly Waiter[]; readonly after: readonly ResourceQuota[] } {
  let after = quotas;
  const charged: Waiter[] = [];
  for (const waiter of waiters) {
    const { request, evaluator } = waiter;
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

function overtakenError(name: string): StatusError {
  const why = "the object has been modified; please apply your changes to the latest version and try again";
  return conflict({ group: "", resource: resourceQuotaKind.plural, name }, why);
}

function late(): StatusError {
  const why = "resource quota evaluation timed out";
  return new StatusError(500, "InternalError", `Internal error occurred: ${why}`, {
    details: { causes: [{ message: why }] },
  });
}
