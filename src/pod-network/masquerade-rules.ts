/** The table of nftables by which packets of pods to destinations outside of the cluster get the node's address. */
import type { IpFamily } from "../std/net/ip.ts";

export interface MasqueradeOptions {
  readonly family: IpFamily;
  readonly table: string;
  /** The CIDRs of the pods of this node. */
  readonly podCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
}

/** Text that replaces the table. Without pod CIDRs: that removes it. */
export function masqueradeRules({ family, table, podCidrs, clusterCidrs }: MasqueradeOptions): string {
  const ip = family === "IPv4" ? "ip" : "ip6";
  const address = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
  const multicast = family === "IPv4" ? "224.0.0.0/4" : "ff00::/8";
  const remove = `add table ${ip} ${table}\ndelete table ${ip} ${table}\n`;
  if (podCidrs.length === 0) return remove;
  const kept = [...clusterCidrs, ...podCidrs, multicast].join(", ");
  return `${remove}table ${ip} ${table} {
 set pods { type ${address}; flags interval; auto-merge; elements = { ${podCidrs.join(", ")} } }
 set kept { type ${address}; flags interval; auto-merge; elements = { ${kept} } }
 chain postrouting {
  type nat hook postrouting priority srcnat; policy accept;
  ${ip} saddr @pods ${ip} daddr != @kept masquerade fully-random
 }
}
`;
}
