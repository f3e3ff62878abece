/**
 * Puts the flow schemas and priority levels of the store into effect, and sets the condition Dangling of flow schemas:
 * whether the priority level that they reference exists.
 */
import { flowSchemaKind } from "../../api/flowcontrol/flow-schema/kind.ts";
import type { FlowSchema } from "../../api/flowcontrol/flow-schema/schema.ts";
import { priorityLevelConfigurationKind } from "../../api/flowcontrol/priority-level-configuration/kind.ts";
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import { apply } from "../../registry/apply.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { FlowController } from "../fairness/flow-controller.ts";
import { ignoreConflict, systemScope } from "./ensure.ts";

export interface FlowControlConsumerOptions {
  readonly registries: Registries;
  readonly controller: FlowController;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Kubernetes' name of the controller in managed fields. */
const FIELD_MANAGER = "api-priority-and-fairness-config-consumer-v1";
/** Writes of one flow schema in a minute: servers of different releases could otherwise fight for its status. */
const WRITES_MAX = 6;
const WRITES_WINDOW_MS = 60_000;
const group = kubernetesGroup(flowSchemaKind.group);
const apiVersion = formatApiVersion(group, flowSchemaKind.version);
const statusStrategy = flowSchemaKind.subresources.find(({ name }) => name === "status")?.strategy;

export class FlowControlConsumer {
  readonly #options: FlowControlConsumerOptions;
  /** Monotonic milliseconds of the writes in the last minute, by flow schema. */
  #writes = new Map<string, readonly number[]>();

  constructor(options: FlowControlConsumerOptions) {
    this.#options = options;
  }

  async reconcile(): Promise<void> {
    const { registries, controller } = this.#options;
    const levels = registries.of(priorityLevelConfigurationKind).objects;
    const schemas = registries.of(flowSchemaKind).objects;
    const [{ items: levelItems }, { items: schemaItems }] = await Promise.all([
      levels.list(levels.prefix()),
      schemas.list(schemas.prefix()),
    ]);
    controller.configure(levelItems, schemaItems);
    const names = new Set(levelItems.map(({ metadata }) => metadata?.name));
    await Promise.all(schemaItems.map((schema) => this.#setDangling(schema, names)));
  }

  async #setDangling(schema: FlowSchema, levels: ReadonlySet<string | undefined>): Promise<void> {
    const { registries, signal } = this.#options;
    const name = schema.metadata?.name ?? "";
    const level = schema.spec?.priorityLevelConfiguration.name ?? "";
    const wanted = describeReference(level, levels.has(level));
    const found = schema.status?.conditions?.find(({ type }) => type === "Dangling");
    const { status, reason, message } = wanted;
    if (found?.status === status && found.reason === reason && found.message === message) return;
    if (!this.#mayWrite(name)) return;
    const registry = registries.of(flowSchemaKind);
    const condition = { type: "Dangling", lastTransitionTime: registry.timestamp(), ...wanted };
    const configuration = { apiVersion, kind: "FlowSchema", metadata: { name }, status: { conditions: [condition] } };
    const options = {
      fieldManager: FIELD_MANAGER,
      force: true,
      subresource: "status",
      subresourceStrategy: statusStrategy,
    };
    await ignoreConflict(apply(registry, { ...systemScope("", signal), group }, name, configuration, options));
  }

  #mayWrite(name: string): boolean {
    const now = this.#options.clock.monotonic();
    for (const [each, times] of this.#writes) {
      const recent = times.filter((time) => now - time < WRITES_WINDOW_MS);
      if (recent.length === 0) this.#writes.delete(each);
      else this.#writes.set(each, recent);
    }
    const times = this.#writes.get(name) ?? [];
    if (times.length >= WRITES_MAX) return false;
    this.#writes.set(name, [...times, now]);
    return true;
  }
}

function describeReference(level: string, exists: boolean) {
  const reference = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`;
  return exists
    ? { status: "False", reason: "Found", message: `${reference} and it exists` }
    : { status: "True", reason: "NotFound", message: `${reference} but there is no such object` };
}
