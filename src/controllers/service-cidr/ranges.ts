/** Which ServiceCIDRs contain which addresses of services. */
import { MANAGER, MANAGER_LABEL } from "../../api/networking/ip-address/labels.ts";
import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import { addressBits, type Cidr, contains, type Ip, parseCidr, parseIp } from "../../std/net/ip.ts";

/** Whether addresses of services exist that only this ServiceCIDR contains. */
export function needsRange(object: ServiceCIDR, all: readonly ServiceCIDR[], addresses: Iterable<IPAddress>): boolean {
  const cidrs = cidrsOf(object);
  const others = all.filter(({ metadata }) => metadata?.name !== object.metadata?.name).flatMap(cidrsOf);
  const isCovered = cidrs.every((cidr) =>
    others.some((other) => other.prefixLength <= cidr.prefixLength && doOverlap(other, cidr)),
  );
  if (isCovered) return false;
  for (const each of addresses) {
    const address = allocatedAddress(each);
    if (address === undefined || !cidrs.some((cidr) => isUsable(cidr, address))) continue;
    if (!others.some((other) => isUsable(other, address))) return true;
  }
  return false;
}

export function overlaps(a: ServiceCIDR, b: ServiceCIDR): boolean {
  const others = cidrsOf(b);
  return cidrsOf(a).some((cidr) => others.some((other) => doOverlap(cidr, other)));
}

export function containsAddress(object: ServiceCIDR, address: Ip): boolean {
  return cidrsOf(object).some((cidr) => isUsable(cidr, address));
}

/** Undefined for objects of other managers than the API servers. */
export function allocatedAddress({ metadata }: IPAddress): Ip | undefined {
  return metadata?.labels?.[MANAGER_LABEL] === MANAGER ? parseIp(metadata.name ?? "") : undefined;
}

function cidrsOf({ spec }: ServiceCIDR): readonly Cidr[] {
  return (spec?.cidrs ?? []).map(parseCidr).filter((cidr) => cidr !== undefined);
}

function doOverlap(a: Cidr, b: Cidr): boolean {
  const [wide, narrow] = a.prefixLength <= b.prefixLength ? [a, b] : [b, a];
  return contains(wide, { family: narrow.family, value: narrow.network });
}

/** The network address, and for IPv4 the broadcast address, are not allocated from a CIDR. */
function isUsable(cidr: Cidr, address: Ip): boolean {
  const last = cidr.network + (1n << BigInt(addressBits(cidr.family) - cidr.prefixLength)) - 1n;
  if (address.value === cidr.network || (cidr.family === "IPv4" && address.value === last)) return false;
  return contains(cidr, address);
}
