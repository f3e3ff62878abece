/**
 * Keeps the condition Available of the API services of extension servers, as kube-aggregator's remote availability
 * controller: checks after each change of the object, its service or its endpoints, every 30 seconds, and after a
 * failure with back-off.
 */
import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { updateManagedFields } from "../../registry/managed-fields/track-managed-fields.ts";
import type { Registries } from "../../registry/registries.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Timer } from "../../std/time/clock.ts";
import { ignoreConflict, systemScope } from "../control-plane/ensure.ts";
import type { Availability } from "./availability.ts";
import type { AggregatorMetrics } from "./metrics.ts";
import type { ExtensionApi } from "./registered-api.ts";

export interface AvailabilityControllerDeps {
  readonly registries: Registries;
  readonly log: Logger;
  readonly metrics: AggregatorMetrics;
  readonly signal: AbortSignal;
  readonly find: (name: string) => ExtensionApi | undefined;
  readonly check: (api: ExtensionApi, signal: AbortSignal) => Promise<Availability>;
}

/** A client that writes a new API service again within this time has no conflict with its condition. */
const SETTLE_MS = 100;
const RESYNC_MS = 30_000;
const BACKOFF = { initialMs: 5, maxMs: 30_000 };
/** API services that are checked at the same time. */
const CHECKS_MAX = 4;
const LOCAL: Availability = {
  status: "True",
  reason: "Local",
  message: "Local APIServices are always available",
};
/** The field manager of the status, as in Kubernetes. */
const FIELD_MANAGER = "kube-apiserver";

export class AvailabilityController implements AsyncDisposable {
  readonly #deps: AvailabilityControllerDeps;
  readonly #queue: WorkQueue;
  readonly #names = new Set<string>();
  #resync: Timer | undefined;

  constructor(deps: AvailabilityControllerDeps) {
    this.#deps = deps;
    const { clock, random } = deps.registries.deps;
    this.#queue = new WorkQueue({
      clock,
      random,
      concurrency: CHECKS_MAX,
      backoff: BACKOFF,
      work: (name, signal) => this.#sync(name, signal),
      onError: (name, error) => {
        // A failed check is shown by the condition.
        if (!(error instanceof UnavailableError)) deps.log.error("Cannot check an API service", error, { name });
      },
    });
  }

  /** Checks the API service soon. */
  check(name: string): void {
    this.#names.add(name);
    this.#resync ??= this.#startResync();
    this.#queue.addAfter(name, SETTLE_MS);
  }

  /** Sets the condition of an API service that this server itself serves, after it had an extension server. */
  async setLocal(name: string): Promise<void> {
    await this.#writeStatus(name, LOCAL);
  }

  forget(name: string): void {
    this.#names.delete(name);
    this.#queue.forget(name);
    this.#deps.metrics.forgetApiService(name);
    if (this.#names.size > 0) return;
    this.#resync?.cancel();
    this.#resync = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#resync?.cancel();
    await this.#queue[Symbol.asyncDispose]();
  }

  #startResync(): Timer {
    return this.#deps.registries.deps.clock.timer(RESYNC_MS, () => {
      for (const name of this.#names) this.#queue.add(name);
      this.#resync = this.#startResync();
    });
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    const { find, check, metrics } = this.#deps;
    const api = find(name);
    if (api === undefined) return;
    const availability = await check(api, signal);
    metrics.setAvailability(name, availability.status === "True");
    await this.#writeStatus(name, availability);
    if (availability.reason === "FailedDiscoveryCheck") throw new UnavailableError(availability.message);
  }

  async #writeStatus(name: string, availability: Availability): Promise<void> {
    const { registries, log, metrics, signal } = this.#deps;
    const registry = registries.of(apiServiceKind);
    const scope = { ...systemScope("", signal), group: kubernetesGroup(registry.kind.group) };
    const request = { registry, scope, name, options: { fieldManager: FIELD_MANAGER, subresource: "status" } };
    await ignoreConflict(
      guaranteedUpdate(request, (previous) => {
        if ((previous.spec?.service === undefined) !== (availability === LOCAL)) return previous;
        const next = withAvailability(previous, availability, registry.timestamp());
        if (next === previous) return previous;
        const wasAvailable = statusOf(previous);
        if (wasAvailable !== availability.status) {
          log.v(2)?.info("Changing the availability of an API service", { name, ...availability });
          if (availability.status === "False") metrics.countUnavailable(name, availability.reason);
        }
        return updateManagedFields(request, next, previous);
      }),
    );
  }
}

/** The check failed: it is repeated after a back-off. */
class UnavailableError extends Error {
  override readonly name = "UnavailableError";
}

function statusOf({ status }: APIService): string | undefined {
  return status?.conditions?.find(({ type }) => type === "Available")?.status;
}

/** Returns the same object when the condition is up to date. */
function withAvailability(service: APIService, { status, reason, message }: Availability, now: string): APIService {
  const conditions = service.status?.conditions ?? [];
  const found = conditions.find(({ type }) => type === "Available");
  if (found?.status === status && found.reason === reason && found.message === message) return service;
  const lastTransitionTime = found?.status === status ? (found.lastTransitionTime ?? now) : now;
  const available = { type: "Available", status, lastTransitionTime, reason, message };
  const others = conditions.filter(({ type }) => type !== "Available");
  return { ...service, status: { ...service.status, conditions: [...others, available] } };
}
