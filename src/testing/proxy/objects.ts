/** Services and endpoints in few words, for tests of the service proxy. */
import type { Service, ServiceSpec } from "../../api/core/service/schema.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";

export function proxyService(name: string, spec: ServiceSpec, ingress: readonly string[] = []): Service {
  return {
    metadata: { name, namespace: "shop" },
    spec: { type: "ClusterIP", ports: [{ port: 80, protocol: "TCP" }], ...spec },
    status: { loadBalancer: { ingress: ingress.map((ip) => ({ ip })) } },
  };
}

/** `10.1.0.1 node=n1 zone=za unready terminating serving`: an address, and what differs from a ready endpoint. */
export function proxySlice(
  service: string,
  endpoints: readonly string[],
  port: { readonly port?: number; readonly name?: string; readonly protocol?: "TCP" | "UDP" | "SCTP" } = {},
): EndpointSlice {
  return {
    metadata: { name: `${service}-1`, namespace: "shop", labels: { "kubernetes.io/service-name": service } },
    addressType: endpoints[0]?.includes("::") ? "IPv6" : "IPv4",
    ports: [{ name: "", port: 8080, protocol: "TCP", ...port }],
    endpoints: endpoints.map((text) => {
      const [address = "", ...words] = text.split(" ");
      const wordOf = (name: string): string | undefined =>
        words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
      const nodeName = wordOf("node");
      const zone = wordOf("zone");
      const terminating = words.includes("terminating");
      const ready = !terminating && !words.includes("unready");
      return {
        addresses: [address],
        conditions: { ready, serving: ready || words.includes("serving"), terminating },
        ...(nodeName === undefined ? {} : { nodeName }),
        ...(zone === undefined ? {} : { hints: { forZones: [{ name: zone }] } }),
      };
    }),
  };
}
