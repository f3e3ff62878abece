/**
 * The CNI configuration of a node: a bridge, addresses from one range, port mappings. The bridge plugin creates the
 * bridge and enables IPv4 forwarding when the first pod starts; a host without pods is not changed.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { join } from "node:path";

export interface CniOptions {
  readonly confDir: string;
  /** The leases of addresses; a reboot empties it, as it ends the pods. */
  readonly leaseDir: string;
  readonly bridge: string;
  /** `10.244.0.0/24` */
  readonly podCidr: string;
  /** Without iptables pods reach the host and each other, but neither the outside nor host ports. */
  readonly hasIptables: boolean;
}

export function conflist(options: CniOptions): unknown {
  const { bridge, podCidr, leaseDir, hasIptables } = options;
  return {
    cniVersion: "0.4.0",
    name: "svc",
    plugins: [
      {
        type: "bridge",
        bridge,
        isGateway: true,
        ipMasq: hasIptables,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: podCidr }]],
          routes: [{ dst: "0.0.0.0/0" }],
          dataDir: leaseDir,
        },
      },
      ...(hasIptables ? [{ type: "portmap", capabilities: { portMappings: true }, snat: true }] : []),
    ],
  };
}

export async function writeConflist(options: CniOptions): Promise<void> {
  await mkdir(options.confDir, { recursive: true, mode: 0o755 });
  const text = `${JSON.stringify(conflist(options), undefined, 2)}\n`;
  await writeFile(join(options.confDir, "10-svc.conflist"), text, { mode: 0o644 });
}

/** The bridge's address: the first of the range. Throws for text that is not an IPv4 range. */
export function gatewayOf(podCidr: string): string {
  const [address = "", bits = ""] = podCidr.split("/");
  const size = Number(bits);
  if (!isIPv4(address) || !/^\d+$/.test(bits) || size < 8 || size > 30) {
    throw new Error(`Cannot use ${JSON.stringify(podCidr)} for pods: must be an IPv4 range such as 10.244.0.0/24`);
  }
  const number = address.split(".").reduce((total, part) => total * 256 + Number(part), 0);
  const first = number - (number % 2 ** (32 - size)) + 1;
  return [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join(".");
}
