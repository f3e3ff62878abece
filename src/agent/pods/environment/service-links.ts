/** Environment variables with the addresses of services, in the format of Docker's links. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Service } from "../../../api/core/service/schema.ts";
import { podNamespace } from "../pod-fields.ts";

/** Every pod gets the variables of this service, whatever its namespace and `enableServiceLinks`. */
const API_SERVER_SERVICE = { namespace: "default", name: "kubernetes" };

/** Of the services in the pod's namespace, unless `enableServiceLinks` is false, and of the API server. */
export function makeServiceVariables(pod: Pod, services: Iterable<Service>): ReadonlyMap<string, string> {
  const variables = new Map<string, string>();
  const own = pod.spec?.enableServiceLinks === false ? undefined : podNamespace(pod);
  const seen = new Map<string, Service>();
  for (const service of services) {
    const { name = "", namespace = "" } = service.metadata ?? {};
    const isForAll = namespace === API_SERVER_SERVICE.namespace && name === API_SERVER_SERVICE.name;
    // A service of that name in the pod's namespace has precedence over the API server's.
    if (namespace === own || (isForAll && !seen.has(name))) seen.set(name, service);
  }
  for (const [name, service] of seen) {
    for (const [key, value] of makeVariables(name, service)) variables.set(key, value);
  }
  return variables;
}

function* makeVariables(name: string, { spec }: Service): Iterable<readonly [string, string]> {
  const ip = spec?.clusterIP ?? "";
  const [first, ...others] = spec?.ports ?? [];
  if (ip === "" || ip === "None" || first === undefined) return;
  const prefix = toVariableName(name);
  const host = ip.includes(":") ? `[${ip}]` : ip;
  yield [`${prefix}_SERVICE_HOST`, ip];
  yield [`${prefix}_SERVICE_PORT`, String(first.port)];
  for (const { name: port, port: number, protocol = "TCP" } of [first, ...others]) {
    if (port) yield [`${prefix}_SERVICE_PORT_${toVariableName(port)}`, String(number)];
    const scheme = protocol.toLowerCase();
    const url = `${scheme}://${host}:${number}`;
    if (number === first.port && protocol === (first.protocol ?? "TCP")) yield [`${prefix}_PORT`, url];
    const link = `${prefix}_PORT_${number}_${protocol}`;
    yield [link, url];
    yield [`${link}_PROTO`, scheme];
    yield [`${link}_PORT`, String(number)];
    yield [`${link}_ADDR`, ip];
  }
}

function toVariableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
