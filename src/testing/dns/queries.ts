/** Queries of DNS clients, and the records of a cluster in a short notation. */
import type { Service } from "../../api/core/service/schema.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { type Edns, encodeQuery, encodeQuestion, parseQuery, type Query } from "../../dns/wire/query.ts";

export const types = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  HTTPS: 65,
  AXFR: 252,
  ANY: 255,
} as const;

export type TypeName = keyof typeof types;

const RECURSION_DESIRED = 0x100;

/** The bytes of a query. */
export function makeQuery(name: string, type: TypeName = "A", edns?: Partial<Edns>, id = 7): Buffer {
  const full = edns && { payloadBytes: 1232, version: 0, dnssecOk: false, ...edns };
  return encodeQuery(encodeQuestion(name, types[type]), id, RECURSION_DESIRED, full);
}

export function toQuery(bytes: Buffer): Query {
  const parsed = parseQuery(bytes);
  if (parsed.kind !== "query") throw new Error(`the message is not a query: ${parsed.kind}`);
  return parsed.query;
}

/** `clusterIPs`: `None` for a headless service. `ports`: `http/TCP/80`. */
export function makeService(path: string, clusterIPs: string, ...ports: readonly string[]): Service {
  const [namespace = "", name = ""] = path.split("/");
  return {
    metadata: { namespace, name },
    spec: {
      type: "ClusterIP",
      clusterIPs: clusterIPs.split(","),
      ports: ports.map((text) => {
        const [portName = "", protocol = "TCP", port] = text.split("/");
        return { name: portName, protocol: protocol as "TCP", port: Number(port) };
      }),
    },
  };
}

export function makeExternalName(path: string, externalName: string): Service {
  const [namespace = "", name = ""] = path.split("/");
  return { metadata: { namespace, name }, spec: { type: "ExternalName", externalName } };
}

/** Endpoints: `10.1.0.1`, `web-0=10.1.0.1`, `!10.1.0.1` for one that is not ready. */
export function makeSlice(
  service: string,
  name: string,
  ports: string,
  ...endpoints: readonly string[]
): EndpointSlice {
  const [namespace = "", serviceName = ""] = service.split("/");
  return {
    metadata: { namespace, name, labels: { "kubernetes.io/service-name": serviceName } },
    addressType: endpoints.some((text) => text.includes(":")) ? "IPv6" : "IPv4",
    endpoints: endpoints.map((text) => {
      const ready = !text.startsWith("!");
      const [hostname, address = hostname] = text.replace("!", "").split("=");
      const named = text.includes("=") && hostname !== undefined ? { hostname } : {};
      return { addresses: [address ?? ""], conditions: { ready }, ...named };
    }),
    ports: (ports === "" ? [] : ports.split(" ")).map((text) => {
      const [portName = "", protocol = "TCP", port] = text.split("/");
      return { name: portName, protocol: protocol as "TCP", port: Number(port) };
    }),
  };
}
