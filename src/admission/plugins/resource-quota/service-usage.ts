/** Quota usage of services: their number, load balancers and node ports. */
import { ONE_UNIT } from "../../../api/core/resources/quantities.ts";
import type { Service } from "../../../api/core/service/schema.ts";
import type { Quantity } from "../../../api/meta/quantity.ts";
import type { Evaluator } from "./evaluator.ts";

const RESOURCES = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

export const serviceEvaluator: Evaluator<Service> = {
  handles: (operation, subresource) => (operation === "CREATE" || operation === "UPDATE") && subresource === "",
  isUniform: false,
  counts: (resource) => RESOURCES.includes(resource),
  usage: (service) =>
    new Map([
      ["count/services", ONE_UNIT],
      ["services", ONE_UNIT],
      ["services.nodeports", toQuantity(countNodePorts(service))],
      ["services.loadbalancers", toQuantity(service.spec?.type === "LoadBalancer" ? 1 : 0)],
    ]),
  matchesScope: () => false,
};

/** The node ports that the service will have: on creation none are allocated yet. */
function countNodePorts({ spec }: Service): number {
  const { ports = [], type, allocateLoadBalancerNodePorts } = spec ?? {};
  if (type !== "NodePort" && type !== "LoadBalancer") return 0;
  if (type === "NodePort" || allocateLoadBalancerNodePorts !== false) return ports.length;
  return ports.filter(({ nodePort = 0 }) => nodePort !== 0).length;
}

function toQuantity(count: number): Quantity {
  return { nanos: BigInt(count) * ONE_UNIT.nanos, format: ONE_UNIT.format };
}
