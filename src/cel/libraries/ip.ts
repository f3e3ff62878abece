/** `ip('10.0.0.1')` and `cidr('10.0.0.0/8')`, parsed strictly. */
import { goQuote } from "../../schema/value/go-quote.ts";
import { addressBits, formatIp, type IpFamily, parseIp } from "../../std/net/ip.ts";
import { type FunctionDeclaration, functionOf, type Library, method, overload } from "../functions.ts";
import { boolType, intType, opaqueType, stringType, type Type } from "../values/types.ts";
import { fail, Opaque, type Value } from "../values/value.ts";
import { typeConstant } from "./conversion.ts";
import { addressError } from "./go-netip.ts";

const ipType = opaqueType("net.IP");
const cidrType = opaqueType("net.CIDR");

class IpValue extends Opaque {
  readonly type: Type = ipType;
  readonly family: IpFamily;
  readonly value: bigint;

  constructor(family: IpFamily, value: bigint) {
    super();
    this.family = family;
    this.value = value;
  }

  override equals(other: Value): boolean {
    return other instanceof IpValue && other.family === this.family && other.value === this.value;
  }

  override costSize(): number {
    return addressBits(this.family) / 8;
  }

  /** Whether the first bits of the address equal `block`, a number with this many bits. */
  startsWith(family: IpFamily, block: bigint, bits: number): boolean {
    return this.family === family && this.value >> BigInt(addressBits(family) - bits) === block;
  }
}

class CidrValue extends Opaque {
  readonly type: Type = cidrType;
  readonly address: IpValue;
  readonly prefixLength: number;

  constructor(address: IpValue, prefixLength: number) {
    super();
    this.address = address;
    this.prefixLength = prefixLength;
  }

  override equals(other: Value): boolean {
    return other instanceof CidrValue && other.prefixLength === this.prefixLength && other.address.equals(this.address);
  }

  override costSize(): number {
    return Math.ceil(this.prefixLength / 8);
  }

  masked(): CidrValue {
    const { family, value } = this.address;
    const host = BigInt(addressBits(family) - this.prefixLength);
    return new CidrValue(new IpValue(family, (value >> host) << host), this.prefixLength);
  }

  contains(address: IpValue): boolean {
    const { family } = this.address;
    const host = BigInt(addressBits(family) - this.prefixLength);
    return address.family === family && address.value >> host === this.address.value >> host;
  }

  text(): string {
    return `${formatIp(this.address)}/${this.prefixLength}`;
  }
}

/** Rejects zones, IPv4-mapped IPv6 addresses and leading zeros. */
function parseStrictIp(text: string): IpValue | string {
  const error = addressError(text);
  if (error !== undefined) {
    return `IP Address ${goQuote(text)} parse error during conversion from string: ${error}`;
  }
  const ip = parseIp(text);
  if (ip === undefined) return `IP address ${goQuote(text)} with zone value is not allowed`;
  if (ip.notation === "mapped") return `IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`;
  return new IpValue(ip.family, ip.value);
}

const cidrErrorPrefix = "network address parse error during conversion from string: ";

function parseStrictCidr(text: string): CidrValue | string {
  const slash = text.lastIndexOf("/");
  if (slash < 0) return prefixError(text, "no '/'");
  const address = text.slice(0, slash);
  const bits = text.slice(slash + 1);
  const error = addressError(address);
  if (error !== undefined) return prefixError(text, error);
  const ip = parseIp(address);
  if (ip === undefined) return prefixError(text, "IPv6 zones cannot be present in a prefix");
  if (!/^(?:0|[1-9]\d*)$/.test(bits) || !Number.isSafeInteger(Number(bits))) {
    return prefixError(text, `bad bits after slash: ${goQuote(bits)}`);
  }
  const mapped = ip.notation === "mapped";
  if (Number(bits) > addressBits(mapped ? "IPv6" : ip.family)) return prefixError(text, "prefix length out of range");
  if (mapped) return `${cidrErrorPrefix}IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`;
  return new CidrValue(new IpValue(ip.family, ip.value), Number(bits));
}

/** The prefix appears twice in Kubernetes' messages too. */
function prefixError(text: string, reason: string): string {
  return `${cidrErrorPrefix}${cidrErrorPrefix}netip.ParsePrefix(${goQuote(text)}): ${reason}`;
}

function toIp(text: string): IpValue {
  const ip = parseStrictIp(text);
  return typeof ip === "string" ? fail(ip) : ip;
}

function toCidr(text: string): CidrValue {
  const cidr = parseStrictCidr(text);
  return typeof cidr === "string" ? fail(cidr) : cidr;
}

function predicateFunction(name: string, id: string, predicate: (ip: IpValue) => boolean): FunctionDeclaration {
  return functionOf(name, method(id, [ipType], boolType, predicate));
}

function isLoopback(ip: IpValue): boolean {
  return ip.startsWith("IPv4", 127n, 8) || (ip.family === "IPv6" && ip.value === 1n);
}

function isLinkLocalUnicast(ip: IpValue): boolean {
  return ip.startsWith("IPv4", 0xa9fen, 16) || ip.startsWith("IPv6", 0xfe80n >> 6n, 10);
}

/** 224.0.0.0/24, or ff02::/16 with any flags. */
function isLinkLocalMulticast(ip: IpValue): boolean {
  if (ip.family === "IPv4") return ip.startsWith("IPv4", 0xe00000n, 24);
  return ip.startsWith("IPv6", 0xffn, 8) && ((ip.value >> 112n) & 0xfn) === 2n;
}

function isMulticast(ip: IpValue): boolean {
  return ip.startsWith("IPv4", 0xen, 4) || ip.startsWith("IPv6", 0xffn, 8);
}

function isGlobalUnicast(ip: IpValue): boolean {
  const broadcast = ip.family === "IPv4" && ip.value === 0xffffffffn;
  return ip.value !== 0n && !broadcast && !isLoopback(ip) && !isMulticast(ip) && !isLinkLocalUnicast(ip);
}

export const ip: Library = {
  functions: [
    functionOf("ip", overload("string_to_ip", [stringType], ipType, toIp)),
    functionOf(
      "isIP",
      overload("is_ip", [stringType], boolType, (text: string) => typeof parseStrictIp(text) !== "string"),
    ),
    functionOf(
      "ip.isCanonical",
      overload("ip_is_canonical", [stringType], boolType, (text: string) => formatIp(toIp(text)) === text),
    ),
    functionOf(
      "family",
      method("ip_family", [ipType], intType, ({ family }: IpValue) => (family === "IPv4" ? 4n : 6n)),
    ),
    predicateFunction("isUnspecified", "ip_is_unspecified", ({ value }) => value === 0n),
    predicateFunction("isLoopback", "ip_is_loopback", isLoopback),
    predicateFunction("isLinkLocalMulticast", "ip_is_link_local_multicast", isLinkLocalMulticast),
    predicateFunction("isLinkLocalUnicast", "ip_is_link_local_unicast", isLinkLocalUnicast),
    predicateFunction("isGlobalUnicast", "ip_is_global_unicast", isGlobalUnicast),
    functionOf(
      "string",
      overload("ip_to_string", [ipType], stringType, (address: IpValue) => formatIp(address)),
    ),
  ],
  constants: { "net.IP": typeConstant(ipType) },
};

function containsCidr(outer: CidrValue, inner: CidrValue): boolean {
  return outer.prefixLength <= inner.prefixLength && outer.contains(inner.address);
}

export const cidr: Library = {
  functions: [
    functionOf("cidr", overload("string_to_cidr", [stringType], cidrType, toCidr)),
    functionOf(
      "isCIDR",
      overload("is_cidr", [stringType], boolType, (text: string) => typeof parseStrictCidr(text) !== "string"),
    ),
    functionOf(
      "containsIP",
      method("cidr_contains_ip_string", [cidrType, stringType], boolType, (block: CidrValue, text: string) => {
        return block.contains(toIp(text));
      }),
      method("cidr_contains_ip_ip", [cidrType, ipType], boolType, (block: CidrValue, address: IpValue) => {
        return block.contains(address);
      }),
    ),
    functionOf(
      "containsCIDR",
      method("cidr_contains_cidr_string", [cidrType, stringType], boolType, (block: CidrValue, text: string) => {
        return containsCidr(block, toCidr(text));
      }),
      method("cidr_contains_cidr", [cidrType, cidrType], boolType, containsCidr),
    ),
    functionOf(
      "ip",
      method("cidr_ip", [cidrType], ipType, ({ address }: CidrValue) => address),
    ),
    functionOf(
      "prefixLength",
      method("cidr_prefix_length", [cidrType], intType, ({ prefixLength }: CidrValue) => BigInt(prefixLength)),
    ),
    functionOf(
      "masked",
      method("cidr_masked", [cidrType], cidrType, (block: CidrValue) => block.masked()),
    ),
    functionOf(
      "string",
      overload("cidr_to_string", [cidrType], stringType, (block: CidrValue) => block.text()),
    ),
  ],
  constants: { "net.CIDR": typeConstant(cidrType) },
};
