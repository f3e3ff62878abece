/** Metrics of changes to the node authorizer's graph. */
import type { NodeGraph } from "../../auth/authz/node/node-graph.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";

/** Buckets that double from 0.1 ms. */
const SECONDS = exponentialBuckets(0.0001, 2, 12);

const OWNED: Readonly<Record<string, string>> = {
  volumeattachments: "VolumeAttachment",
  resourceslices: "ResourceSlice",
};

export function measureNodeGraph(graph: NodeGraph, registry: MetricRegistry, clock: Clock): NodeGraph {
  const seconds = registry.histogram(
    {
      name: "node_authorizer_graph_actions_duration_seconds",
      help: "Duration of changes to the node authorizer's graph in seconds.",
      stability: "ALPHA",
      labels: ["operation"],
    },
    SECONDS,
  );
  const measure = (operation: string, change: () => void): void => {
    const began = clock.monotonic();
    change();
    seconds.with(operation).observe((clock.monotonic() - began) / 1000);
  };
  return {
    putPod: (pod) => measure("AddPod", () => graph.putPod(pod)),
    deletePod: (namespace, name) => measure("DeletePod", () => graph.deletePod(namespace, name)),
    putVolume: (volume) => measure("AddPV", () => graph.putVolume(volume)),
    deleteVolume: (name) => measure("DeletePV", () => graph.deleteVolume(name)),
    putNodeObject: (resource, name, node) =>
      measure(`Add${OWNED[resource] ?? resource}`, () => graph.putNodeObject(resource, name, node)),
    deleteNodeObject: (resource, name) =>
      measure(`Delete${OWNED[resource] ?? resource}`, () => graph.deleteNodeObject(resource, name)),
    hasRelationship: (node, resource, namespace, name) => graph.hasRelationship(node, resource, namespace, name),
  };
}
