/** The fields of the configuration file, each with its flag if it has one. */
import type { Flag } from "../../flags/flag.ts";
import { membersOf } from "../../schema/members.ts";
import type { Field, ObjectSchema, Schema } from "../../schema/schema.ts";
import { agentFlags } from "../flags.ts";
import type { Steps } from "./origin.ts";
import { svcletConfiguration } from "./schema.ts";

export interface ConfigField {
  readonly steps: Steps;
  readonly schema: Schema;
  readonly field: Field;
  /** The flag with the same effect. */
  readonly flag?: { readonly name: string; readonly row: Flag };
}

/** Fields without a flag that have an effect; others are accepted at their default only. */
const effectiveFields: ReadonlySet<string> = new Set([
  "configMapAndSecretChangeDetectionStrategy",
  "containerLogMaxWorkers",
  "containerLogMonitorInterval",
  "crashLoopBackOff.maxContainerRestartPeriod",
  "enableDebugFlagsHandler",
  "enableProfilingHandler",
  "enableSystemLogHandler",
  "enableSystemLogQuery",
  "imageMaximumGCAge",
  "imagePullCredentialsVerificationPolicy",
  "iptablesDropBit",
  "iptablesMasqueradeBit",
  "maxParallelImagePulls",
  "memorySwap.swapBehavior",
  "memoryThrottlingFactor",
  "mergeDefaultEvictionSettings",
  "nodeLeaseDurationSeconds",
  "nodeStatusReportFrequency",
  "podLogsDir",
  "preloadedImagesVerificationAllowlist",
  "showHiddenMetricsForVersion",
  "shutdownGracePeriod",
  "shutdownGracePeriodByPodPriority",
  "shutdownGracePeriodCriticalPods",
  "singleProcessOOMKill",
  "tracing.endpoint",
  "tracing.samplingRatePerMillion",
  "userNamespaces.idsPerPod",
]);

export function isEffective({ steps, flag }: ConfigField): boolean {
  return flag === undefined ? effectiveFields.has(steps.join(".")) : flag.row.inert === undefined;
}

const rowsByPath = new Map(
  Object.entries(agentFlags as Readonly<Record<string, Flag>>).flatMap(([name, row]) =>
    row.config === undefined ? [] : [[row.config, { name, row }] as const],
  ),
);

/** In the order of the file's description. */
export const configFields: readonly ConfigField[] = leafFields(svcletConfiguration, []);

function leafFields(schema: ObjectSchema, parent: Steps): ConfigField[] {
  return membersOf(schema).flatMap(({ name, field, schema: target }) => {
    const steps = [...parent, name];
    if (parent.length === 0 && (name === "apiVersion" || name === "kind")) return [];
    if (target.type === "object") return leafFields(target, steps);
    const flag = rowsByPath.get(steps.join("."));
    return [{ steps, schema: target, field, ...(flag === undefined ? {} : { flag }) }];
  });
}

/** The field's default; undefined when it has none. */
export function getDefault({ field, flag }: ConfigField, withFile: boolean): unknown {
  if (flag === undefined) return field.default;
  const { row } = flag;
  // Features without effect are off, also where Kubernetes' default is on.
  const value = withFile && row.inert === undefined && row.fileDefault !== undefined ? row.fileDefault : row.default;
  return toJson(row, value);
}

export function toJson(row: Flag, value: unknown): unknown {
  return row.type.toJson === undefined ? value : row.type.toJson(value);
}

/** Throws `ValueError`. */
export function fromJson(row: Flag, json: unknown): unknown {
  return row.type.fromJson === undefined ? row.type.parse(String(json)) : row.type.fromJson(json);
}
