/** Message and annotations of an eviction, in Kubernetes' words. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { formatQuantity, parseQuantity } from "../../api/meta/quantity.ts";
import { appContainers, initContainers } from "../pods/pod-fields.ts";
import { parseUnits } from "../pods/resources/quantities.ts";
import type { ContainerUsage, PodUsage } from "./pod-usage.ts";
import { formatAmount, type Observations, type StarvedResource, signals } from "./signals.ts";
import { type Threshold, thresholdQuantity } from "./thresholds.ts";

export interface EvictionMessage {
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export function makeEvictionMessage(
  resource: StarvedResource,
  pod: Pod,
  usage: PodUsage | undefined,
  thresholds: readonly Threshold[],
  observations: Observations,
): EvictionMessage {
  const low = `The node was low on resource: ${resource}. ${describeThreshold(resource, thresholds, observations)}`;
  if (usage === undefined) return { message: low, annotations: {} };
  const offending = usage.containers.flatMap((each) => describeContainer(resource, pod, each));
  return {
    message: [low, ...offending.map(({ text }) => text)].join(""),
    annotations: {
      offending_containers: offending.map(({ name }) => name).join(","),
      offending_containers_usage: offending.map(({ used }) => used).join(","),
      starved_resource: resource,
    },
  };
}

function describeThreshold(
  resource: StarvedResource,
  thresholds: readonly Threshold[],
  observations: Observations,
): string {
  const threshold = thresholds.find((each) => signals[each.signal].resource === resource);
  const observed = threshold && observations.get(threshold.signal);
  if (threshold === undefined || observed === undefined) return "";
  const quantity = threshold.value.endsWith("%") ? undefined : parseQuantity(threshold.value);
  // Kubernetes prints a share in binary units, whatever it is a share of.
  const text =
    quantity === undefined ? formatAmount(thresholdQuantity(threshold, observed), "memory") : formatQuantity(quantity);
  return `Threshold quantity: ${text}, available: ${formatAmount(observed.available, resource)}. `;
}

function describeContainer(
  resource: StarvedResource,
  pod: Pod,
  { name, memory, root, logs }: ContainerUsage,
): readonly { readonly name: string; readonly used: string; readonly text: string }[] {
  if (resource !== "memory" && resource !== "ephemeral-storage") return [];
  const spec = [...appContainers(pod), ...initContainers(pod)].find((each) => each.name === name);
  if (spec === undefined) return [];
  const amount = resource === "memory" ? memory : root.usedBytes + logs.usedBytes;
  const request = parseQuantity(spec.resources?.requests?.[resource] ?? "0");
  if (request === undefined || amount <= parseUnits(spec.resources?.requests?.[resource])) return [];
  const used = formatAmount(amount, resource);
  const text = `Container ${name} was using ${used}, request is ${formatQuantity(request)}, has larger consumption of ${resource}. `;
  return [{ name, used, text }];
}
