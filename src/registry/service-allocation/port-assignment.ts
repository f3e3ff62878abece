/** Chooses the node ports of a service. */
import type { ServicePort, ServiceSpec } from "../../api/core/service/schema.ts";
import { allocatesNodePorts, mayHaveNodePorts, needsHealthCheck, nodePortsOf } from "../../api/core/service/types.ts";
import { internalError, StatusError } from "../../api/status.ts";
import { type FieldError, invalidField } from "../../schema/validation/field-error.ts";
import { type PortAllocation, PortUnavailable } from "./node-ports.ts";

export type Reject = (errors: readonly FieldError[]) => never;

export function needsNodePorts(spec: ServiceSpec): boolean {
  return mayHaveNodePorts(spec) || needsHealthCheck(spec);
}

/** Returns the spec with its node ports. Throws a `StatusError` or what `reject` throws. */
export function allocateNodePorts(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  allocation: PortAllocation,
  reject: Reject,
): ServiceSpec {
  let ports = spec.ports ?? [];
  if (mayHaveNodePorts(spec)) {
    ports =
      old === undefined
        ? allocateForCreate(spec, ports, allocation, reject)
        : allocateForUpdate(spec, old, ports, allocation, reject);
  }
  const assigned = spec.ports === undefined ? spec : { ...spec, ports };
  return allocateHealthCheckPort(assigned, old, allocation);
}

function allocatePort(port: number, i: number, allocation: PortAllocation, reject: Reject): void {
  try {
    allocation.allocate(port);
  } catch (error) {
    if (!(error instanceof PortUnavailable)) throw error;
    reject([invalidField(`spec.ports[${i}].nodePort`, port, error.message)]);
  }
}

function allocateNextPort(allocation: PortAllocation): number {
  try {
    return allocation.allocateNext();
  } catch (error) {
    if (!(error instanceof PortUnavailable)) throw error;
    throw internalError(`failed to allocate a nodePort: ${error.message}`);
  }
}

/** Ports of the same number and different protocols get the same node port. */
function allocateForCreate(
  spec: ServiceSpec,
  ports: readonly ServicePort[],
  allocation: PortAllocation,
  reject: Reject,
): readonly ServicePort[] {
  const nodePorts = new Map<number, number>();
  // The first that a port of the number requests.
  const requestedPorts = new Map<number, number>();
  for (const { port, nodePort = 0 } of ports) {
    if (nodePort !== 0 && !requestedPorts.has(port)) requestedPorts.set(port, nodePort);
  }
  return ports.map((port, i) => {
    const { nodePort = 0 } = port;
    if (nodePort === 0 && !allocatesNodePorts(spec)) return port;
    const before = nodePorts.get(port.port);
    if (before !== undefined) {
      if (nodePort !== 0 && nodePort !== before) allocatePort(nodePort, i, allocation, reject);
      return { ...port, nodePort: nodePort || before };
    }
    const requested = requestedPorts.get(port.port);
    if (requested !== undefined) allocatePort(requested, i, allocation, reject);
    const allocated = requested ?? allocateNextPort(allocation);
    nodePorts.set(port.port, allocated);
    return { ...port, nodePort: allocated };
  });
}

function allocateForUpdate(
  spec: ServiceSpec,
  old: ServiceSpec,
  ports: readonly ServicePort[],
  allocation: PortAllocation,
  reject: Reject,
): readonly ServicePort[] {
  const held = new Set(nodePortsOf(old));
  const pairs = new Set<string>();
  return ports.map((port, i) => {
    if (!port.nodePort && !allocatesNodePorts(spec)) return port;
    if (port.nodePort && !held.has(port.nodePort)) allocatePort(port.nodePort, i, allocation, reject);
    const nodePort = port.nodePort || allocateNextPort(allocation);
    held.add(nodePort);
    const pair = `{${port.protocol} ${nodePort}}`;
    if (pairs.has(pair)) throw new StatusError(500, "", `duplicate nodePort: ${pair}`);
    pairs.add(pair);
    return { ...port, nodePort };
  });
}

/** The health check port, on which load balancers check whether a node has local endpoints. */
function allocateHealthCheckPort(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  allocation: PortAllocation,
): ServiceSpec {
  if (!needsHealthCheck(spec) || (old !== undefined && needsHealthCheck(old))) return spec;
  const { healthCheckNodePort: requested } = spec;
  try {
    if (!requested) return { ...spec, healthCheckNodePort: allocation.allocateNext() };
    allocation.allocate(requested);
    return spec;
  } catch (error) {
    if (!(error instanceof PortUnavailable)) throw error;
    const what = requested ? `requested HealthCheck NodePort ${requested}` : "a HealthCheck NodePort 0";
    throw internalError(`failed to allocate ${what}: ${error.message}`);
  }
}
