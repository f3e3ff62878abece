import type { Service } from "./schema.ts";
import { specOf } from "./types.ts";

export function externalText(object: Service): string {
  const { type, externalIPs = [], externalName = "" } = specOf(object);
  const points = (object.status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || "");
  switch (type) {
    case "ExternalName":
      return externalName;
    case "LoadBalancer":
      return [...new Set(points.filter((point) => point !== ""))].sort().concat(externalIPs).join(",") || "<pending>";
    default:
      return externalIPs.join(",") || "<none>";
  }
}

export function portsText(object: Service): string {
  const ports = (specOf(object).ports ?? []).map(({ port, nodePort, protocol }) =>
    nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
  );
  return ports.join(",") || "<none>";
}
