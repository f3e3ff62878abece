/** The ports of a service's endpoints: those of the service, with the numbers that pods have for named ones. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ServicePort } from "../../api/core/service/schema.ts";

export interface ResolvedPort {
  readonly servicePort: ServicePort;
  /** Of the pod. */
  readonly port: number;
}

/**
 * The maximum number of ports in all lists of a service together: a service has thousands of ports, and each of
 * thousands of pods may have its own numbers for them.
 */
const PORTS_MAX = 100_000;

/** Resolves the ports of one service. Pods with the same numbers share one list, which `finish` makes once. */
export class PortResolver<T> {
  readonly #ports: readonly ServicePort[];
  readonly #named: readonly ServicePort[];
  readonly #finish: (ports: readonly ResolvedPort[]) => T;
  readonly #lists = new Map<string, T>();

  constructor(ports: readonly ServicePort[], finish: (ports: readonly ResolvedPort[]) => T) {
    this.#ports = ports;
    this.#named = ports.filter(({ targetPort }) => typeof targetPort === "string");
    this.#finish = finish;
  }

  /** Without the ports that the pod does not have. Undefined when there are too many different lists. */
  portsOf(pod: Pod): T | undefined {
    const numbers = this.#named.length === 0 ? undefined : namedPortsOf(pod);
    const numberOf = ({ targetPort = 0, protocol }: ServicePort): number | undefined =>
      typeof targetPort === "number" ? targetPort : numbers?.get(portKey(targetPort, protocol));
    const key = this.#named.map(numberOf).join();
    const known = this.#lists.get(key);
    if (known !== undefined) return known;
    if (this.#lists.size > 0 && this.#lists.size * this.#ports.length > PORTS_MAX) return undefined;
    const resolved = this.#ports.flatMap((servicePort) => {
      const port = numberOf(servicePort);
      return port === undefined ? [] : [{ servicePort, port }];
    });
    const list = this.#finish(resolved);
    this.#lists.set(key, list);
    return list;
  }
}

/** The first container's, if several use a name. */
function namedPortsOf({ spec }: Pod): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  for (const { ports = [] } of [...(spec?.containers ?? []), ...sidecars]) {
    for (const { name = "", protocol, containerPort } of ports) {
      const key = portKey(name, protocol);
      if (!numbers.has(key)) numbers.set(key, containerPort);
    }
  }
  return numbers;
}

function portKey(name: string, protocol: string | undefined): string {
  return `${protocol} ${name}`;
}
