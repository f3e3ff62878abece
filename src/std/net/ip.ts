/**
 * IP addresses and CIDR blocks, parsed as Go's older parsers do: they accept leading zeros and IPv4-mapped IPv6, which
 * `notation` reports. An IPv4-mapped address is an IPv4 address.
 */

export type IpFamily = "IPv4" | "IPv6";

/** Whether Go's stricter parsers (netip) accept the text as well. */
export type IpNotation = "standard" | "leadingZeros" | "mapped";

export interface Ip {
  readonly family: IpFamily;
  readonly value: bigint;
  readonly notation: IpNotation;
}

export interface Cidr {
  readonly family: IpFamily;
  /** The address before the slash. */
  readonly address: Ip;
  /** The address with all host bits zero. */
  readonly network: bigint;
  readonly prefixLength: number;
  readonly notation: IpNotation;
}

const MAPPED = 0xffffn;

/** Undefined when malformed. Zones (`fe80::1%eth0`) are not accepted. */
export function parseIp(text: string): Ip | undefined {
  if (!text.includes(":")) return parseIPv4(text);
  const groups = parseGroups(text);
  if (groups === undefined) return undefined;
  const value = groups.values.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
  const mapped = value >> 32n === MAPPED;
  const notation = groups.leadingZeros ? "leadingZeros" : mapped ? "mapped" : "standard";
  return mapped ? { family: "IPv4", value: value & 0xffffffffn, notation } : { family: "IPv6", value, notation };
}

/**
 * As `net.isIP(text) !== 0`, but for zones. The regular expression of Node.js for IPv6 takes 5 ms to compile, which the
 * start of a program should not wait for.
 */
export function isIpAddress(text: string): boolean {
  const ip = parseIp(text);
  return ip !== undefined && ip.notation !== "leadingZeros";
}

function parseIPv4(text: string): Ip | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d+$/.test(part) && Number(part) <= 255)) return undefined;
  const value = parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  return { family: "IPv4", value, notation: parts.some(hasLeadingZero) ? "leadingZeros" : "standard" };
}

function hasLeadingZero(digits: string): boolean {
  return digits.length > 1 && digits.startsWith("0");
}

interface Groups {
  /** Eight numbers of 16 bits. */
  readonly values: readonly number[];
  readonly leadingZeros: boolean;
}

/** `::` stands for one group of zeros at least; the last 32 bits may be written as IPv4. */
function parseGroups(text: string): Groups | undefined {
  const sides = text.split("::");
  if (sides.length > 2) return undefined;
  const [head, tail] = sides.map((side, i) => (side === "" ? emptySide : parseSide(side, i === sides.length - 1)));
  if (head === undefined || (sides.length === 2 && tail === undefined)) return undefined;
  const leadingZeros = head.leadingZeros || tail?.leadingZeros === true;
  if (tail === undefined) return head.values.length === 8 ? head : undefined;
  const missing = 8 - head.values.length - tail.values.length;
  if (missing < 1) return undefined;
  return { values: [...head.values, ...Array<number>(missing).fill(0), ...tail.values], leadingZeros };
}

const emptySide: Groups = { values: [], leadingZeros: false };

function parseSide(side: string, mayEndInIPv4: boolean): Groups | undefined {
  const values: number[] = [];
  let leadingZeros = false;
  const parts = side.split(":");
  for (const [i, part] of parts.entries()) {
    if (part.includes(".")) {
      const ip = mayEndInIPv4 && i === parts.length - 1 ? parseIPv4(part) : undefined;
      if (ip === undefined) return undefined;
      values.push(Number(ip.value >> 16n), Number(ip.value & 0xffffn));
      leadingZeros ||= ip.notation === "leadingZeros";
      continue;
    }
    if (!/^[0-9a-f]+$/i.test(part) || Number.parseInt(part, 16) > 0xffff) return undefined;
    values.push(Number.parseInt(part, 16));
    leadingZeros ||= part.length > 4;
  }
  return { values, leadingZeros };
}

/** The canonical text: dotted decimal, or RFC 5952. */
export function formatIp({ family, value }: Pick<Ip, "family" | "value">): string {
  if (family === "IPv4") return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  const { start, length } = longestZeros(groups);
  if (length < 2) return groups.join(":");
  return `${groups.slice(0, start).join(":")}::${groups.slice(start + length).join(":")}`;
}

/** The first of the longest. */
function longestZeros(groups: readonly string[]): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start++) {
    let length = 0;
    while (groups[start + length] === "0") length++;
    if (length > best.length) best = { start, length };
  }
  return best;
}

export function addressBits(family: IpFamily): 32 | 128 {
  return family === "IPv4" ? 32 : 128;
}

/** `10.0.0.0/8`, `2001:db8::/64`; undefined when malformed. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;
  const address = parseIp(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (address === undefined || !/^\d+$/.test(digits)) return undefined;
  const written = text.slice(0, slash).includes(":") ? 128 : 32;
  if (Number(digits) > written) return undefined;
  const asIPv4 = address.family === "IPv4" && written === 128;
  // A mapped address whose prefix ends before the IPv4 part is an IPv6 block.
  const wide = asIPv4 && Number(digits) < 96;
  const family = wide ? "IPv6" : address.family;
  const prefixLength = asIPv4 && !wide ? Number(digits) - 96 : Number(digits);
  const value = wide ? (MAPPED << 32n) | address.value : address.value;
  const host = BigInt(addressBits(family) - prefixLength);
  const notation = address.notation !== "leadingZeros" && hasLeadingZero(digits) ? "leadingZeros" : address.notation;
  return { family, address, network: (value >> host) << host, prefixLength, notation };
}

export function formatCidr({ family, network, prefixLength }: Cidr): string {
  return `${formatIp({ family, value: network })}/${prefixLength}`;
}

export function contains(block: Cidr, { family, value }: Pick<Ip, "family" | "value">): boolean {
  const host = BigInt(addressBits(block.family) - block.prefixLength);
  return family === block.family && value >> host === block.network >> host;
}

/** Node shows an IPv4 peer of an IPv6 socket as `::ffff:10.0.0.1`. */
export function withoutIpv4Mapping(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
