/**
 * Detects a webhook that rejects the pods of its own service: the webhook stays unreachable, and every request it
 * handles stays rejected. The check runs after a request was rejected, and an event names the command that resolves it.
 */
import { createHash } from "node:crypto";
import { eventKind } from "../../api/core/event/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { formatTime } from "../../schema/value/time.ts";
import { type AdmissionRequest, metadataOf } from "../chain/attributes.ts";
import type { PluginDeps } from "../chain/factory.ts";
import type { ObjectWriter } from "../chain/plugin.ts";
import type { WebhookCallError } from "./call-webhook.ts";
import { type ConfiguredWebhook, nameOf, SUSPENDED } from "./webhook-source.ts";

type DeadlockDeps = Pick<PluginDeps, "reader" | "writer" | "clock" | "log" | "stopping">;

/** The interval at which the event is repeated. */
const REPEAT_INTERVAL_MS = 60_000;
/** The number of webhooks whose last report is kept; the map is cleared when it is full. */
const REPORTS_MAX = 1000;

const REASON = "WebhookDeadlock";

export class DeadlockDetector {
  readonly #deps: DeadlockDeps;
  /** The monotonic time of the last report, by webhook. */
  readonly #reported = new Map<string, number>();

  constructor(deps: DeadlockDeps) {
    this.#deps = deps;
  }

  /** Checks in the background: the client already has its response. */
  start(webhook: ConfiguredWebhook, request: AdmissionRequest, { message }: WebhookCallError): void {
    const { log, stopping } = this.#deps;
    if (stopping.aborted || request.dryRun) return;
    this.#check(webhook, request, message).catch((error: unknown) => {
      if (!stopping.aborted) log.error("Failed to check whether a webhook rejects the pods of its own service", error);
    });
  }

  async #check(webhook: ConfiguredWebhook, request: AdmissionRequest, reason: string): Promise<void> {
    const { reader, clock, stopping } = this.#deps;
    const { service } = webhook.definition.clientConfig;
    if (service === undefined || request.operation === "DELETE" || request.namespace !== service.namespace) return;
    if (!createsPods(request)) return;
    const found = await reader.get(serviceKind, service.namespace, service.name, stopping);
    if (found === undefined || !selectsPodsOf(found, request)) return;
    const now = clock.monotonic();
    if (now - (this.#reported.get(webhook.id) ?? Number.NEGATIVE_INFINITY) < REPEAT_INTERVAL_MS) return;
    if (this.#reported.size >= REPORTS_MAX) this.#reported.clear();
    this.#reported.set(webhook.id, now);
    await this.#report(webhook, `${service.namespace}/${service.name}`, reason);
  }

  async #report(webhook: ConfiguredWebhook, service: string, reason: string): Promise<void> {
    const { log, writer, clock, stopping } = this.#deps;
    const configuration = nameOf(webhook.configuration);
    const { name } = webhook.definition;
    const { kind } = webhook;
    const resource = kind.toLowerCase();
    const online = `kubectl annotate ${resource} ${configuration} ${SUSPENDED}=${name}`;
    const offline = `svc webhooks suspend ${configuration} --webhook=${name}`;
    const details = { configuration, webhook: name, service, fix: online, fixWhileStopped: offline };
    log.error("A webhook rejects the pods of its own service", reason, details);
    const message =
      `webhook ${name} cannot be reached and rejects the pods of its own service ${service}: it does not recover ` +
      `by itself. Suspend it until they run: ${online}; or, while the API server is stopped: ${offline}. ${reason}`;
    await recordEvent(writer, {
      kind,
      configuration,
      webhook,
      message,
      now: formatTime(clock.now()),
      signal: stopping,
    });
  }
}

/** Resources that pods are created from, and pods. */
function createsPods({ kind, subresource }: AdmissionRequest): boolean {
  return subresource === "" && (kind.plural === "pods" || POD_CONTROLLERS.has(`${kind.group}/${kind.plural}`));
}

const POD_CONTROLLERS: ReadonlySet<string> = new Set([
  ...["apps/deployments", "apps/replicasets", "apps/statefulsets", "apps/daemonsets"],
  "/replicationcontrollers",
]);

/** Whether the object is a pod of the service, or a controller that creates such pods. */
function selectsPodsOf({ spec }: Service, { object }: AdmissionRequest): boolean {
  const selector = Object.entries(spec?.selector ?? {});
  if (selector.length === 0) return false;
  const { template } = (object as { readonly spec?: { readonly template?: ApiObject } } | undefined)?.spec ?? {};
  const labels = metadataOf(template ?? object).labels ?? {};
  return selector.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

interface DeadlockReport {
  readonly kind: string;
  readonly configuration: string;
  readonly webhook: ConfiguredWebhook;
  readonly message: string;
  readonly now: string;
  readonly signal: AbortSignal;
}

/** Creates one event for each webhook, or increases its count. */
async function recordEvent(
  writer: ObjectWriter,
  { kind, configuration, webhook, message, now, signal }: DeadlockReport,
): Promise<void> {
  const namespace = "default";
  const hash = createHash("sha256").update(webhook.id).digest("hex").slice(0, 16);
  const name = `${configuration}.${hash}`;
  const { uid, resourceVersion } = webhook.configuration.metadata ?? {};
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
    await writer.create(eventKind, namespace, event as never, signal);
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
    const target = { namespace, name, subresource: "" };
    await writer.update(
      eventKind,
      target,
      (existing) => ({ ...existing, message, lastTimestamp: now, count: (existing.count ?? 0) + 1 }),
      signal,
    );
  }
}
