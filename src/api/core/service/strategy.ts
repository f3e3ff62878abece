/**
 * Keeps the linked fields of a service consistent when a client changes only some of them. Fields that the client omits
 * are taken from the previous service, or dropped when the new type does not use them; fields that the client changes
 * stay, for validation to check.
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

/** Sets the allocated values of `previous`, and keeps `clusterIP` and `clusterIPs` consistent. */
export function syncLinkedFields(next: Service, previous: Service | undefined): Service {
  const spec = specOf(next);
  if (previous === undefined) return { ...next, spec: setClusterIPs(spec) };
  const old = specOf(previous);
  return { ...next, spec: syncClusterIPs(patchAllocatedValues(spec, old), old) };
}

/** Older clients set `clusterIP` only. */
function setClusterIPs(spec: ServiceSpec): ServiceSpec {
  const { clusterIP = "", clusterIPs = [] } = spec;
  return clusterIP !== "" && clusterIPs.length === 0 ? { ...spec, clusterIPs: [clusterIP] } : spec;
}

/** Updates may omit the values that the server allocated. */
function patchAllocatedValues(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  let patched = spec;
  if (needsClusterIP(spec) && needsClusterIP(old)) {
    const clusterIP = spec.clusterIP || old.clusterIP;
    const same = (spec.clusterIPs ?? []).length === 0 && clusterIP === old.clusterIP;
    patched = {
      ...patched,
      ...setIfDefined("clusterIP", clusterIP),
      ...setIfDefined("clusterIPs", same ? old.clusterIPs : spec.clusterIPs),
    };
  }
  if (allocatesNodePorts(spec) && allocatesNodePorts(old)) patched = patchAllocatedNodePorts(patched, old);
  if (needsHealthCheck(spec) && needsHealthCheck(old)) {
    patched = {
      ...patched,
      ...setIfDefined("healthCheckNodePort", spec.healthCheckNodePort || old.healthCheckNodePort),
    };
  }
  return patched;
}

function setIfDefined<K extends keyof ServiceSpec>(field: K, value: ServiceSpec[K]): Partial<ServiceSpec> {
  return value === undefined ? {} : { [field]: value };
}

/** Matches ports by name. Skips a node port that another port of the new service uses. */
function patchAllocatedNodePorts(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const before = new Map((old.ports ?? []).map(({ name = "", nodePort = 0 }) => [name, nodePort]));
  const used = new Set(nodePortsOf(spec));
  const ports = (spec.ports ?? []).map((port): ServicePort => {
    const allocated = before.get(port.name ?? "") ?? 0;
    if (port.nodePort || allocated === 0 || used.has(allocated)) return port;
    return { ...port, nodePort: allocated };
  });
  return { ...spec, ports };
}

/** A client that changes or clears only `clusterIP` changes `clusterIPs` with it. */
function syncClusterIPs(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const { clusterIP = "", clusterIPs = [] } = spec;
  const before = old.clusterIP ?? "";
  if (clusterIP === before) {
    return clusterIPs.length === 0 ? { ...spec, ...setIfDefined("clusterIPs", old.clusterIPs) } : spec;
  }
  if (!sameStrings(clusterIPs, old.clusterIPs)) return spec;
  return { ...spec, clusterIPs: clusterIP === "" ? [] : [clusterIP] };
}

/** Drops the fields that the new type does not use, unless the client changed them. */
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

/** Drops the internal traffic policy, if it is valid, of a service without traffic inside the cluster. */
export function dropInternalTraffic(service: Service): Service {
  const { internalTrafficPolicy, ...spec } = specOf(service);
  const isValid = internalTrafficPolicy === "Cluster" || internalTrafficPolicy === "Local";
  return spec.type === "ExternalName" && isValid ? { ...service, spec } : service;
}

/** Drops node ports, unless the client sets one that the service did not have. */
function dropNodePorts(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const before = new Set(nodePortsOf(old));
  if (!mayHaveNodePorts(old) || mayHaveNodePorts(spec) || spec.ports === undefined) return spec;
  if (nodePortsOf(spec).some((port) => !before.has(port))) return spec;
  return { ...spec, ports: spec.ports.map(({ nodePort: _, ...port }) => port) };
}

function dropLoadBalancerStatus(service: Service): Service {
  if (specOf(service).type === "LoadBalancer" || service.status?.loadBalancer === undefined) return service;
  const { loadBalancer: _, ...status } = service.status;
  return { ...service, status };
}
