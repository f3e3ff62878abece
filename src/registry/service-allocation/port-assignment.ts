/** Which ports on the nodes a service is to have. */
import type { ServicePort, ServiceSpec } from "../../api/core/service/schema.ts";
import { allocatesNodePorts, mayHaveNodePorts, needsHealthCheck, nodePortsOf } from "../../api/core/service/types.ts";
import { StatusError } from "../../api/status.ts";
import { type FieldError, invalidField } from "../../schema/validation/field-error.ts";
import { internalError } from "./internal-error.ts";
import { type PortAllocation, PortUnavailable } from "./node-ports.ts";

export type Reject = (errors: readonly FieldError[]) => never;

export function needsNodePorts(spec: ServiceSpec): boolean {
  return mayHaveNodePorts(spec) || needsHealthCheck(spec);
}

/** The spec with ports that were taken for it. Throws a `StatusError` or what `refuse` throws. */
export function allocateNodePorts(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  taking: PortAllocation,
  refuse: Reject,
): ServiceSpec {
  let ports = spec.ports ?? [];
  if (mayHaveNodePorts(spec)) {
    ports =
      old === undefined
        ? allocateForCreate(spec, ports, taking, refuse)
        : allocateForUpdate(spec, old, ports, taking, refuse);
  }
  const assigned = spec.ports === undefined ? spec : { ...spec, ports };
  return allocateHealthCheckPort(assigned, old, taking);
}

function allocatePort(port: number, i: number, taking: PortAllocation, refuse: Reject): void {
  try {
    taking.allocate(port);
  } catch (error) {
    if (!(error instanceof PortUnavailable)) throw error;
    refuse([invalidField(`spec.ports[${i}].nodePort`, port, error.message)]);
  }
}

function allocateNextPort(taking: PortAllocation): number {
  try {
    return taking.allocateNext();
  } catch (error) {
    if (!(error instanceof PortUnavailable)) throw error;
    throw internalError(`failed to allocate a nodePort: ${error.message}`);
  }
}

/** Ports of one number, which differ in protocol, get one number on the nodes. */
function allocateForCreate(
  spec: ServiceSpec,
  ports: readonly ServicePort[],
  taking: PortAllocation,
  refuse: Reject,
): readonly ServicePort[] {
  const given = new Map<number, number>();
  return ports.map((port, i) => {
    const { nodePort = 0 } = port;
    if (nodePort === 0 && !allocatesNodePorts(spec)) return port;
    const before = given.get(port.port);
    if (before !== undefined) {
      if (nodePort !== 0 && nodePort !== before) allocatePort(nodePort, i, taking, refuse);
      return { ...port, nodePort: nodePort || before };
    }
    const wanted = ports.find((other) => other.port === port.port && other.nodePort)?.nodePort;
    if (wanted !== undefined) allocatePort(wanted, i, taking, refuse);
    const taken = wanted ?? allocateNextPort(taking);
    given.set(port.port, taken);
    return { ...port, nodePort: taken };
  });
}

function allocateForUpdate(
  spec: ServiceSpec,
  old: ServiceSpec,
  ports: readonly ServicePort[],
  taking: PortAllocation,
  refuse: Reject,
): readonly ServicePort[] {
  const held = new Set(nodePortsOf(old));
  const pairs = new Set<string>();
  return ports.map((port, i) => {
    if (!port.nodePort && !allocatesNodePorts(spec)) return port;
    if (port.nodePort && !held.has(port.nodePort)) allocatePort(port.nodePort, i, taking, refuse);
    const nodePort = port.nodePort || allocateNextPort(taking);
    held.add(nodePort);
    const pair = `{${port.protocol} ${nodePort}}`;
    if (pairs.has(pair)) throw new StatusError(500, "", `duplicate nodePort: ${pair}`);
    pairs.add(pair);
    return { ...port, nodePort };
  });
}

/** Load balancers that send to local pods ask the nodes whether there are any. */
function allocateHealthCheckPort(spec: ServiceSpec, old: ServiceSpec | undefined, taking: PortAllocation): ServiceSpec {
  if (!needsHealthCheck(spec) || (old !== undefined && needsHealthCheck(old))) return spec;
  const { healthCheckNodePort: wanted } = spec;
  try {
    if (!wanted) return { ...spec, healthCheckNodePort: taking.allocateNext() };
    taking.allocate(wanted);
    return spec;
  } catch (error) {
    if (!(error instanceof PortUnavailable)) throw error;
    const what = wanted ? `requested HealthCheck NodePort ${wanted}` : "a HealthCheck NodePort 0";
    throw internalError(`failed to allocate ${what}: ${error.message}`);
  }
}
