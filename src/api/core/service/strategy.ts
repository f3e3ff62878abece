/**
 * What clients mean when they change one of a service's linked members and not the others. Members are taken from the
 * service as it was where a client left them out, and let go where the new type has no use for them; whatever a client
 * changed itself stays, for validation to judge.
 */
import type { Service, ServicePort, ServiceSpec } from "./schema.ts";
import {
  allocatesNodePorts,
  isExternallyAccessible,
  mayHaveNodePorts,
  needsClusterIP,
  needsHealthCheck,
  nodePortsOf,
  sameClusterIPs,
  sameStrings,
  specOf,
} from "./types.ts";

/** The service with what was given to it before, and with `clusterIP` and `clusterIPs` in step. */
export function syncLinkedFields(next: Service, previous: Service | undefined): Service {
  const spec = specOf(next);
  if (previous === undefined) return { ...next, spec: setClusterIPs(spec) };
  const old = specOf(previous);
  return { ...next, spec: syncClusterIPs(patchAllocatedValues(spec, old), old) };
}

/** Older clients know the singular member alone. */
function setClusterIPs(spec: ServiceSpec): ServiceSpec {
  const { clusterIP = "", clusterIPs = [] } = spec;
  return clusterIP !== "" && clusterIPs.length === 0 ? { ...spec, clusterIPs: [clusterIP] } : spec;
}

/** Updates need not repeat what the server gave. */
function patchAllocatedValues(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  let kept = spec;
  if (needsClusterIP(spec) && needsClusterIP(old)) {
    const clusterIP = spec.clusterIP || old.clusterIP;
    const same = (spec.clusterIPs ?? []).length === 0 && clusterIP === old.clusterIP;
    kept = {
      ...kept,
      ...setIfDefined("clusterIP", clusterIP),
      ...setIfDefined("clusterIPs", same ? old.clusterIPs : spec.clusterIPs),
    };
  }
  if (allocatesNodePorts(spec) && allocatesNodePorts(old)) kept = patchAllocatedNodePorts(kept, old);
  if (needsHealthCheck(spec) && needsHealthCheck(old)) {
    kept = { ...kept, ...setIfDefined("healthCheckNodePort", spec.healthCheckNodePort || old.healthCheckNodePort) };
  }
  return kept;
}

function setIfDefined<K extends keyof ServiceSpec>(field: K, value: ServiceSpec[K]): Partial<ServiceSpec> {
  return value === undefined ? {} : { [field]: value };
}

/** Ports are the same when their names are. A number that another port of the service now has is not given again. */
function patchAllocatedNodePorts(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const before = new Map((old.ports ?? []).map(({ name = "", nodePort = 0 }) => [name, nodePort]));
  const used = new Set(nodePortsOf(spec));
  const ports = (spec.ports ?? []).map((port): ServicePort => {
    const known = before.get(port.name ?? "") ?? 0;
    if (port.nodePort || known === 0 || used.has(known)) return port;
    return { ...port, nodePort: known };
  });
  return { ...spec, ports };
}

/** A client that changes or clears the singular member alone means the plural one as well. */
function syncClusterIPs(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const { clusterIP = "", clusterIPs = [] } = spec;
  const before = old.clusterIP ?? "";
  if (clusterIP === before) {
    return clusterIPs.length === 0 ? { ...spec, ...setIfDefined("clusterIPs", old.clusterIPs) } : spec;
  }
  if (!sameStrings(clusterIPs, old.clusterIPs)) return spec;
  return { ...spec, clusterIPs: clusterIP === "" ? [] : [clusterIP] };
}

/** Members of which the new type makes no use, as far as the client left them as they were. */
export function dropTypeDependentFields(next: Service, previous: Service): Service {
  const [spec, old] = [specOf(next), specOf(previous)];
  const unused = new Set<keyof ServiceSpec>();
  if (needsClusterIP(old) && !needsClusterIP(spec)) {
    if (sameClusterIPs(spec, old)) unused.add("clusterIP").add("clusterIPs");
    if (sameStrings(spec.ipFamilies, old.ipFamilies)) unused.add("ipFamilies");
    for (const field of ["ipFamilyPolicy", "internalTrafficPolicy"] as const) {
      if (spec[field] === old[field]) unused.add(field);
    }
  }
  if (needsHealthCheck(old) && !needsHealthCheck(spec) && spec.healthCheckNodePort === old.healthCheckNodePort) {
    unused.add("healthCheckNodePort");
  }
  if (old.type === "LoadBalancer" && spec.type !== "LoadBalancer") {
    for (const field of ["allocateLoadBalancerNodePorts", "loadBalancerClass"] as const) {
      if (spec[field] === old[field]) unused.add(field);
    }
  }
  if (isExternallyAccessible(old) && !isExternallyAccessible(spec)) {
    if (spec.externalTrafficPolicy === old.externalTrafficPolicy) unused.add("externalTrafficPolicy");
  }
  const kept = Object.fromEntries(Object.entries(spec).filter(([name]) => !unused.has(name as keyof ServiceSpec)));
  return dropLoadBalancerStatus({ ...next, spec: dropNodePorts(kept as ServiceSpec, old) });
}

/** Unless the client asks for a number that the service did not have. */
function dropNodePorts(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const before = nodePortsOf(old);
  if (!mayHaveNodePorts(old) || mayHaveNodePorts(spec) || spec.ports === undefined) return spec;
  if (nodePortsOf(spec).some((port) => !before.includes(port))) return spec;
  return { ...spec, ports: spec.ports.map(({ nodePort: _, ...port }) => port) };
}

function dropLoadBalancerStatus(service: Service): Service {
  if (specOf(service).type === "LoadBalancer" || service.status?.loadBalancer === undefined) return service;
  const { loadBalancer: _, ...status } = service.status;
  return { ...service, status };
}
