/**
 * A webhook that keeps away the very pods that would answer for it: nobody can reach it, so nothing it is asked about
 * is let through, and that is how it stays. This finds out when a request is refused, and says what helps.
 */
import { createHash } from "node:crypto";
import { eventKind } from "../../api/core/event/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { timeOf } from "../../schema/value/time.ts";
import type { PluginDeps } from "../chain/factory.ts";
import { metadataOf } from "../chain/attributes.ts";
import type { AdmissionRequest, ObjectWriter } from "../chain/plugin.ts";
import type { CallFailed } from "./call.ts";
import { type Hook, nameOf, SUSPENDED } from "./hook.ts";

type DeadlockDeps = Pick<PluginDeps, "lookup" | "effects" | "clock" | "log" | "stopping">;

/** Told again while it lasts. */
const AGAIN_MS = 60_000;
/** Webhooks of which it is known when they were told of; then it begins anew. */
const TOLD_MAX = 1000;

const REASON = "WebhookDeadlock";

export class Deadlocks {
  readonly #deps: DeadlockDeps;
  /** By webhook: when it was told last, by the clock's monotonic time. */
  readonly #told = new Map<string, number>();

  constructor(deps: DeadlockDeps) {
    this.#deps = deps;
  }

  /** Looks on in the background: the client has its answer already. */
  look(hook: Hook, request: AdmissionRequest, { message }: CallFailed): void {
    const { log, stopping } = this.#deps;
    if (stopping.aborted || request.dryRun) return;
    this.#look(hook, request, message).catch((error: unknown) => {
      if (!stopping.aborted) log.error("Cannot find out whether a webhook guards its own pods", error);
    });
  }

  async #look(hook: Hook, request: AdmissionRequest, why: string): Promise<void> {
    const { reader: lookup, clock, stopping } = this.#deps;
    const { service } = hook.webhook.clientConfig;
    if (service === undefined || request.operation === "DELETE" || request.namespace !== service.namespace) return;
    if (!isPodMaker(request)) return;
    const found = await lookup.get(serviceKind, service.namespace, service.name, stopping);
    if (found === undefined || !isBehind(found, request)) return;
    const now = clock.monotonic();
    if (now - (this.#told.get(hook.id) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.set(hook.id, now);
    await this.#tell(hook, `${service.namespace}/${service.name}`, why);
  }

  async #tell(hook: Hook, service: string, why: string): Promise<void> {
    const { log, writer: effects, clock, stopping } = this.#deps;
    const configuration = nameOf(hook.configuration);
    const { name } = hook.webhook;
    const { kind } = hook;
    const resource = kind.toLowerCase();
    const online = `kubectl annotate ${resource} ${configuration} ${SUSPENDED}=${name}`;
    const offline = `svc webhooks suspend ${configuration} --webhook=${name}`;
    const about = { configuration, webhook: name, service, fix: online, fixWhileStopped: offline };
    log.error("A webhook keeps away the pods that would answer for it", why, about);
    const message =
      `webhook ${name} cannot be reached and refuses the pods of its own service ${service}: it will not come back ` +
      `by itself. Suspend it until they run: ${online}; or, while the API server is stopped: ${offline}. ${why}`;
    await record(effects, { kind, configuration, hook, message, now: timeOf(clock.now()), signal: stopping });
  }
}

/** Of what pods are made. */
function isPodMaker({ kind, subresource }: AdmissionRequest): boolean {
  return subresource === "" && (kind.plural === "pods" || MAKERS.has(`${kind.group}/${kind.plural}`));
}

const MAKERS: ReadonlySet<string> = new Set([
  ...["apps/deployments", "apps/replicasets", "apps/statefulsets", "apps/daemonsets"],
  "/replicationcontrollers",
]);

/** Whether the object is a pod of the service, or makes such pods. */
function isBehind({ spec }: Service, { object }: AdmissionRequest): boolean {
  const selector = Object.entries(spec?.selector ?? {});
  if (selector.length === 0) return false;
  const { template } = (object as { readonly spec?: { readonly template?: ApiObject } } | undefined)?.spec ?? {};
  const labels = metadataOf(template ?? object).labels ?? {};
  return selector.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

interface Told {
  readonly kind: string;
  readonly configuration: string;
  readonly hook: Hook;
  readonly message: string;
  readonly now: string;
  readonly signal: AbortSignal;
}

/** One event for each webhook, counted up. */
async function record(effects: ObjectWriter, { kind, configuration, hook, message, now, signal }: Told): Promise<void> {
  const namespace = "default";
  const hash = createHash("sha256").update(hook.id).digest("hex").slice(0, 16);
  const name = `${configuration}.${hash}`;
  const { uid, resourceVersion } = hook.configuration.metadata ?? {};
  const event = {
    metadata: { name, namespace },
    involvedObject: { kind, apiVersion: "admissionregistration.k8s.io/v1", name: configuration, uid, resourceVersion },
    reason: REASON,
    message,
    type: "Warning",
    source: { component: "apiserver" },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  };
  try {
    await effects.create(eventKind, namespace, event as never, signal);
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
    const again = { namespace, name, subresource: "" };
    await effects.update(
      eventKind,
      again,
      (before) => ({ ...before, message, lastTimestamp: now, count: (before.count ?? 0) + 1 }),
      signal,
    );
  }
}
