/** Clients of services with session affinity, as the kernel has them. */
import { formatIp, parseIp } from "../../std/net/ip.ts";

export interface AffinityClient {
  readonly address: string;
  /** The time until the client may get another endpoint. */
  readonly seconds: number;
}

interface ListedSet {
  readonly name?: string;
  readonly table?: string;
  readonly elem?: readonly { readonly elem?: { readonly val?: unknown; readonly expires?: number } }[];
}

/** By set, from nft's JSON of the sets of one family. */
export function parseAffinityClients(json: string, table: string): ReadonlyMap<string, readonly AffinityClient[]> {
  const { nftables = [] } = JSON.parse(json) as { readonly nftables?: readonly { readonly set?: ListedSet }[] };
  const clients = new Map<string, readonly AffinityClient[]>();
  for (const { set } of nftables) {
    if (set?.table !== table || set.name === undefined || !set.name.startsWith("affinity-")) continue;
    const found = (set.elem ?? []).flatMap(({ elem }) => {
      const ip = typeof elem?.val === "string" ? parseIp(elem.val) : undefined;
      const seconds = elem?.expires ?? 0;
      return ip === undefined || seconds <= 0 ? [] : { address: formatIp(ip), seconds };
    });
    if (found.length > 0) clients.set(set.name, found);
  }
  return clients;
}
