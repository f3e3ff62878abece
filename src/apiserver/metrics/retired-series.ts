/** Removes the series of resources that are not served any more, so that definitions that come and go leave none. */
import type { Scheme } from "../../api/scheme.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { resourceName } from "./storage-metrics.ts";

/** The value for keys of no kind. */
const OTHER = "other";

export function removeRetiredSeries(registry: MetricRegistry, scheme: Scheme): void {
  const kinds = scheme.kinds();
  const names = new Set(kinds.map(resourceName)).add(OTHER);
  const prefixes = new Set(kinds.map(({ storageName }) => `/${storageName}`));
  /** By the labels that identify a resource: whether it is served. */
  const checks: readonly (readonly [string, (...values: readonly string[]) => boolean])[] = [
    [
      "group,version,resource",
      (group = "", version = "", resource = "") =>
        resource === "" || scheme.byResource(group, version, resource) !== undefined,
    ],
    ["group,version,kind", (group = "", version = "", kind = "") => scheme.byKind(group, version, kind) !== undefined],
    ["resource", (name = "") => names.has(name)],
    ["operation,type", (_operation, type = "") => names.has(type)],
    ["resource_prefix", (prefix = "") => prefixes.has(prefix)],
  ];
  for (const family of registry.all()) {
    for (const [labels, isServed] of checks) {
      const indexes = labels.split(",").map((label) => family.labels.indexOf(label));
      if (indexes.includes(-1)) continue;
      family.removeWhere((values) => !isServed(...indexes.map((index) => values[index] ?? "")));
      break;
    }
  }
}
