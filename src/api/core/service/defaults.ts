import type { Service, ServicePort, ServiceSpec } from "./schema.ts";
import { isExternallyAccessible } from "./types.ts";

const AFFINITY_SECONDS = 10_800;

export function setServiceDefaults(object: Service): Service {
  const typed: ServiceSpec = {
    ...object.spec,
    sessionAffinity: object.spec?.sessionAffinity || "None",
    type: object.spec?.type || "ClusterIP",
  };
  const spec = withPolicies({ ...withAffinity(typed), ...(typed.ports && { ports: typed.ports.map(withTarget) }) });
  return withIpModes({ ...object, spec });
}

function withAffinity({ sessionAffinityConfig, ...spec }: ServiceSpec): ServiceSpec {
  switch (spec.sessionAffinity) {
    case "None":
      return spec;
    case "ClientIP":
      return sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined
        ? { ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds: AFFINITY_SECONDS } } }
        : { ...spec, sessionAffinityConfig };
    default:
      return { ...spec, ...(sessionAffinityConfig && { sessionAffinityConfig }) };
  }
}

function withTarget(port: ServicePort): ServicePort {
  return { ...port, protocol: port.protocol || "TCP", targetPort: port.targetPort || port.port };
}

function withPolicies(spec: ServiceSpec): ServiceSpec {
  const { type, externalTrafficPolicy, internalTrafficPolicy, allocateLoadBalancerNodePorts } = spec;
  const inside = type === "ClusterIP" || type === "NodePort" || type === "LoadBalancer";
  return {
    ...spec,
    ...(isExternallyAccessible(spec) && !externalTrafficPolicy ? { externalTrafficPolicy: "Cluster" } : {}),
    ...(inside && internalTrafficPolicy === undefined ? { internalTrafficPolicy: "Cluster" } : {}),
    ...(type === "LoadBalancer" && allocateLoadBalancerNodePorts === undefined
      ? { allocateLoadBalancerNodePorts: true }
      : {}),
  };
}

/** Load balancers hand packets on as they are, where they do not say otherwise. */
function withIpModes(object: Service): Service {
  const points = object.status?.loadBalancer?.ingress;
  if (object.spec?.type !== "LoadBalancer" || points === undefined) return object;
  const ingress = points.map((point) => (point.ip && point.ipMode === undefined ? { ...point, ipMode: "VIP" } : point));
  return { ...object, status: { ...object.status, loadBalancer: { ...object.status?.loadBalancer, ingress } } };
}
