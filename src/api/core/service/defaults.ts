import type { Service, ServicePort, ServiceSpec } from "./schema.ts";
import { isExternallyAccessible } from "./types.ts";

const AFFINITY_SECONDS = 10_800;

export function setServiceDefaults(object: Service): Service {
  const typed: ServiceSpec = {
    ...object.spec,
    sessionAffinity: object.spec?.sessionAffinity || "None",
    type: object.spec?.type || "ClusterIP",
  };
  const spec = setPolicyDefaults({
    ...setAffinityDefaults(typed),
    ...(typed.ports && { ports: typed.ports.map(setTargetPort) }),
  });
  return setIpModes({ ...object, spec });
}

function setAffinityDefaults({ sessionAffinityConfig, ...spec }: ServiceSpec): ServiceSpec {
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

function setTargetPort(port: ServicePort): ServicePort {
  return { ...port, protocol: port.protocol || "TCP", targetPort: port.targetPort || port.port };
}

function setPolicyDefaults(spec: ServiceSpec): ServiceSpec {
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

/** The default `ipMode` of load balancer ingress points is VIP. */
function setIpModes(object: Service): Service {
  const points = object.status?.loadBalancer?.ingress;
  if (object.spec?.type !== "LoadBalancer" || points === undefined) return object;
  const ingress = points.map((point) => (point.ip && point.ipMode === undefined ? { ...point, ipMode: "VIP" } : point));
  return { ...object, status: { ...object.status, loadBalancer: { ...object.status?.loadBalancer, ingress } } };
}
