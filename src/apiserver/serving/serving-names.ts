/** The names and addresses of the self-signed serving certificate. */
import { usableRange } from "../../registry/service-allocation/addresses.ts";
import { formatIp, isIpAddress, parseCidr } from "../../std/net/ip.ts";
import type { ApiServerConfig } from "../config/config.ts";

/** The DNS names of the API's services inside a cluster. */
const SERVICE_NAMES = [
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
  "svc",
  "svc.default",
  "svc.default.svc",
  "svc.default.svc.cluster.local",
];

export interface ServingHost {
  readonly hostname: string;
  /** Without loopback and link-local addresses. */
  readonly addresses: readonly string[];
}

export interface ServingNames {
  /** A certificate without one of these is replaced. */
  readonly required: readonly string[];
  /** The host's addresses, which can change: a certificate is not replaced for them. */
  readonly addresses: readonly string[];
}

type Config = Pick<ApiServerConfig, "bindAddress" | "serving" | "services">;

/** Throws no error: other parts of the start report invalid ranges. */
export function servingNames({ bindAddress, serving, services }: Config, host: ServingHost): ServingNames {
  const isAny = ["", "0.0.0.0", "::"].includes(bindAddress);
  const advertised = [hostOf(serving.advertisedHost ?? ""), services.advertiseAddress ?? ""];
  const required = [
    ...["localhost", "127.0.0.1", "::1", host.hostname.toLowerCase()],
    ...SERVICE_NAMES,
    ...services.clusterIpRanges.flatMap((range) => firstAddressOf(range) ?? []),
    ...(isAny ? [] : [bindAddress]),
    ...advertised.filter((name) => name !== ""),
  ];
  return { required: [...new Set(required)], addresses: isAny ? host.addresses : [] };
}

/** Without the port that --external-hostname may have. */
function hostOf(text: string): string {
  if (isIpAddress(text)) return text;
  return text
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();
}

function firstAddressOf(range: string): string | undefined {
  const block = parseCidr(range);
  return block === undefined ? undefined : formatIp({ family: block.family, value: usableRange(block).first });
}
