import {
  duplicateField,
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1123Label, portName, portNumber, qualifiedName } from "../../meta/validation/names.ts";
import { PROTOCOLS } from "../protocols.ts";
import type { ServicePort, ServiceSpec } from "./schema.ts";
import { isHeadless } from "./types.ts";

const PORTS = "spec.ports";
/** The kubelet's port, which cloud load balancers would expose. */
const AGENT_PORT = 10250;

export function validatePorts(spec: ServiceSpec): readonly FieldError[] {
  const { ports = [], type } = spec;
  const errors: FieldError[] = [];
  if (ports.length === 0 && !isHeadless(spec) && type !== "ExternalName") errors.push(requiredField(PORTS));
  for (const [i, port] of ports.entries()) {
    if (errors.length >= errorsMax) break;
    if (type !== "LoadBalancer" || port.port !== AGENT_PORT) continue;
    const detail = `may not expose port ${AGENT_PORT} externally since it is used by kubelet`;
    errors.push(invalidField(index(PORTS, i), port.port, detail));
  }
  const names = new Set<string | undefined>();
  for (const [i, port] of ports.entries()) {
    if (errors.length >= errorsMax) break;
    const repeated = names.size === names.add(port.name).size;
    errors.push(...validatePort(port, ports.length > 1, repeated, index(PORTS, i)));
  }
  return [...errors, ...validateUniquePorts(spec)];
}

function validatePort(port: ServicePort, needsName: boolean, repeated: boolean, path: string): readonly FieldError[] {
  const { name = "", protocol = "", targetPort = 0, appProtocol } = port;
  const at = child(path, "name");
  const nameProblems = name === "" ? [] : dns1123Label(name);
  const targetProblems = typeof targetPort === "number" ? portNumber(targetPort) : portName(targetPort);
  const appProblems = appProtocol === undefined ? [] : qualifiedName(appProtocol);
  return [
    ...(name === "" && needsName ? [requiredField(at)] : []),
    ...nameProblems.map((problem) => invalidField(at, name, problem)),
    ...(name !== "" && repeated ? [duplicateField(at, name)] : []),
    ...portNumber(port.port).map((problem) => invalidField(child(path, "port"), port.port, problem)),
    ...validateProtocol(protocol, child(path, "protocol")),
    ...targetProblems.map((problem) => invalidField(child(path, "targetPort"), targetPort, problem)),
    ...appProblems.map((problem) => invalidField(child(path, "appProtocol"), appProtocol, problem)),
  ];
}

function validateProtocol(protocol: string, path: string): readonly FieldError[] {
  if (protocol === "") return [requiredField(path)];
  return PROTOCOLS.includes(protocol) ? [] : [notSupported(path, protocol, PROTOCOLS)];
}

/** Ports must not share a node port or a service port per protocol. */
function validateUniquePorts({ ports = [], type }: ServiceSpec): readonly FieldError[] {
  const used = new Set<string>();
  const isUsed = (what: string): boolean => used.size === used.add(what).size;
  return validateEach(ports, ({ port, protocol, nodePort = 0 }, i) => {
    const path = index(PORTS, i);
    const at = child(path, "nodePort");
    const onNode = nodePort !== 0 && isUsed(`node ${nodePort} ${protocol}`);
    return [
      ...(type === "ClusterIP" && nodePort !== 0
        ? [forbiddenField(at, "may not be used when `type` is 'ClusterIP'")]
        : []),
      ...(onNode ? [duplicateField(at, nodePort)] : []),
      ...(isUsed(`service ${port} ${protocol}`) ? [duplicateField(path, { protocol, port })] : []),
    ];
  });
}
