/** Sets the condition Dangling of flow schemas: whether the priority level that they reference exists. */
import { flowSchemaKind } from "../../api/flowcontrol/flow-schema/kind.ts";
import type { FlowSchema } from "../../api/flowcontrol/flow-schema/schema.ts";
import { priorityLevelConfigurationKind } from "../../api/flowcontrol/priority-level-configuration/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { ignoreConflict, systemScope } from "./ensure.ts";

export async function reconcileFlowSchemaStatus(registries: Registries, signal: AbortSignal): Promise<void> {
  const schemas = registries.of(flowSchemaKind);
  const levels = registries.of(priorityLevelConfigurationKind);
  const scope = { ...systemScope("", signal), group: schemas.kind.group };
  const { items } = await schemas.objects.list(schemas.prefix(scope));
  const present = await levels.objects.list(levels.prefix(scope));
  const names = new Set(present.items.map(({ metadata }) => metadata?.name));
  const next = (schema: FlowSchema): FlowSchema => {
    const level = schema.spec?.priorityLevelConfiguration.name ?? "";
    return withDanglingCondition(schema, level, names.has(level), schemas.timestamp());
  };
  const writes = items
    .filter((schema) => next(schema) !== schema)
    .map(({ metadata }) => ({ registry: schemas, scope, name: metadata?.name ?? "", options: {} }))
    .map((request) => ignoreConflict(guaranteedUpdate(request, next)));
  await Promise.all(writes);
}

/** Returns the same object when the condition is up to date. */
function withDanglingCondition(
  schema: FlowSchema,
  level: string,
  exists: boolean,
  lastTransitionTime: string,
): FlowSchema {
  const [status, reason, suffix] = exists
    ? (["False", "Found", "and it exists"] as const)
    : (["True", "NotFound", "but there is no such object"] as const);
  const message = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)} ${suffix}`;
  const conditions = schema.status?.conditions ?? [];
  const found = conditions.find(({ type }) => type === "Dangling");
  if (found?.status === status && found.reason === reason && found.message === message) return schema;
  const dangling = { type: "Dangling", status, lastTransitionTime, reason, message };
  const others = conditions.filter(({ type }) => type !== "Dangling");
  return { ...schema, status: { ...schema.status, conditions: [...others, dangling] } };
}
