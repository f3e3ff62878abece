/** The columns of `kubectl get hpa`. */
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import type { Column } from "../../kind.ts";
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from "./schema.ts";

/** The number of metrics shown; the cell counts the others. */
const SHOWN = 2;
const UNKNOWN = "<unknown>";

export const horizontalPodAutoscalerColumns: readonly Column<HorizontalPodAutoscaler>[] = [
  nameColumn,
  column("Reference", ({ spec }) => `${spec?.scaleTargetRef.kind ?? ""}/${spec?.scaleTargetRef.name ?? ""}`),
  column("Targets", targetsOf),
  column("MinPods", ({ spec }) => String(spec?.minReplicas ?? "<unset>")),
  column("MaxPods", ({ spec }) => spec?.maxReplicas ?? 0),
  column("Replicas", ({ status }) => status?.currentReplicas ?? 0),
  ageColumn,
];

function targetsOf({ spec, status }: HorizontalPodAutoscaler): string {
  const metrics = spec?.metrics ?? [];
  if (metrics.length === 0) return "<none>";
  const texts = metrics.map((metric, i) => metricText(metric, status?.currentMetrics?.[i]));
  const more = texts.length > SHOWN ? ` + ${texts.length - SHOWN} more...` : "";
  return `${texts.slice(0, SHOWN).join(", ")}${more}`;
}

function metricText(metric: MetricSpec, status: MetricStatus | undefined): string {
  switch (metric.type) {
    case "External":
      return amountText(metric.external?.target, status?.external?.current);
    case "Object":
      return amountText(metric.object?.target, status?.object?.current);
    case "Pods":
      return `${status?.pods?.current.averageValue ?? UNKNOWN}/${metric.pods?.target.averageValue ?? ""}`;
    case "Resource":
      return `${metric.resource?.name}: ${utilizationText(metric.resource?.target, status?.resource?.current)}`;
    case "ContainerResource": {
      const source = metric.containerResource;
      return `${source?.name}: ${utilizationText(source?.target, status?.containerResource?.current)}`;
    }
    default:
      return "<unknown type>";
  }
}

function amountText(target: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  if (target?.averageValue !== undefined) return `${current?.averageValue ?? UNKNOWN}/${target.averageValue} (avg)`;
  return `${current?.value ?? UNKNOWN}/${target?.value ?? ""}`;
}

function utilizationText(target: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  if (target?.averageValue !== undefined) return `${current?.averageValue ?? UNKNOWN}/${target.averageValue}`;
  const percent = (share: number | undefined, absent: string): string => (share === undefined ? absent : `${share}%`);
  return `${percent(current?.averageUtilization, UNKNOWN)}/${percent(target?.averageUtilization, "<auto>")}`;
}
