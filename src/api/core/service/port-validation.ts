import {
  duplicateField,
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
export function validatePorts(spec: ServiceSpec): readonly FieldError[] {
  const { ports = [] } = spec;
  const names = new Set<string | undefined>();
  return validateEach(ports, (port, i) => {
    const repeated = names.size === names.add(port.name).size;
    return validatePort(port, ports.length > 1, repeated, index(PORTS, i));
  });
}

export function requirePorts(spec: ServiceSpec): readonly FieldError[] {
  const needed = !isHeadless(spec) && spec.type !== "ExternalName";
  return needed && (spec.ports ?? []).length === 0 ? [requiredField(PORTS)] : [];
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
export function validateUniquePorts({ ports = [], type }: ServiceSpec): readonly FieldError[] {
  const used = new Set<string>();
  const isUsed = (what: string): boolean => used.size === used.add(what).size;
  const nodePortAt = (i: number): string => child(index(PORTS, i), "nodePort");
  return [
    ...validateEach(type === "ClusterIP" ? ports : [], ({ nodePort = 0 }, i) =>
      nodePort === 0 ? [] : [forbiddenField(nodePortAt(i), "may not be used when `type` is 'ClusterIP'")],
    ),
    ...validateEach(ports, ({ protocol, nodePort = 0 }, i) =>
      nodePort !== 0 && isUsed(`node ${nodePort} ${protocol}`) ? [duplicateField(nodePortAt(i), nodePort)] : [],
    ),
    ...validateEach(ports, ({ protocol, port }, i) =>
      isUsed(`service ${port} ${protocol}`) ? [duplicateField(index(PORTS, i), { protocol, port })] : [],
    ),
  ];
}
