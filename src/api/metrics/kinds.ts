/** Kinds that the server computes from its agents' metrics for each request. Their resources have no singular names. */
import { formatQuantity, parseQuantity } from "../../schema/value/quantity.ts";
import { nameColumn } from "../columns/columns.ts";
import type { Column, Kind } from "../kind.ts";
import { type NodeMetrics, nodeMetrics, type PodMetrics, podMetrics, type ResourceUsage } from "./schema.ts";

const names = {
  group: "metrics.svc.io",
  version: "v1beta1",
  singular: "",
  shortNames: [],
  categories: [],
  verbs: ["get", "list"],
  subresources: [],
  storageName: "",
  selectableFields: {},
  strategy: {},
} as const;

interface Measured {
  readonly window: string;
}

function columnsOf<T extends Measured>(usagesOf: (object: T) => readonly ResourceUsage[]): readonly Column<T>[] {
  const usage = (resource: string): Column<T> => ({
    name: resource,
    type: "string",
    format: "quantity",
    priority: 0,
    cell: (object) => addQuantities(usagesOf(object).map((each) => each[resource] ?? "0")),
  });
  const window: Column<T> = {
    name: "Window",
    type: "string",
    format: "duration",
    priority: 0,
    cell: (object) => object.window,
  };
  return [usage("cpu"), usage("memory"), window];
}

/** The sum in the format of the first. */
function addQuantities(texts: readonly string[]): string {
  const quantities = texts.flatMap((text) => parseQuantity(text) ?? []);
  const nanos = quantities.reduce((sum, each) => sum + each.nanos, 0n);
  return formatQuantity({ nanos, format: quantities[0]?.format ?? "DecimalSI" });
}

export const nodeMetricsKind: Kind<NodeMetrics> = {
  ...names,
  kind: "NodeMetrics",
  listKind: "NodeMetricsList",
  plural: "nodes",
  namespaced: false,
  schema: nodeMetrics,
  columns: [nameColumn, ...columnsOf<NodeMetrics>(({ usage }) => [usage])],
};

export const podMetricsKind: Kind<PodMetrics> = {
  ...names,
  kind: "PodMetrics",
  listKind: "PodMetricsList",
  plural: "pods",
  namespaced: true,
  schema: podMetrics,
  columns: [nameColumn, ...columnsOf<PodMetrics>(({ containers }) => containers.map(({ usage }) => usage))],
};
