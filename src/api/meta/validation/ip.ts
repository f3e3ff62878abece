/**
 * Rules for IP addresses and CIDRs. Newer fields require the canonical format; older ("legacy") fields accept what they
 * always did, with a warning that has the canonical format.
 */
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import {
  addressBits,
  type Cidr,
  contains,
  formatCidr,
  formatIp,
  type Ip,
  parseCidr,
  parseIp,
} from "../../../std/net/ip.ts";

const NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/** The bits before the IPv4 part of an IPv4-mapped address. */
const MAPPED_BITS = 96;

/** Kubernetes' messages for an invalid address in a newer field. */
export function ipProblems(text: string): readonly string[] {
  const problems = strictLegacyIpProblems(text);
  const ip = parseIp(text);
  return problems.length > 0 || ip === undefined ? problems : canonicalProblems(text, formatIp(ip));
}

/** The messages for a legacy field while StrictIPCIDRValidation is on: the format need not be canonical. */
export function strictLegacyIpProblems(text: string): readonly string[] {
  const ip = parseIp(text);
  if (ip === undefined) return [NO_IP];
  if (ip.notation === "leadingZeros") return ["must not have leading 0s"];
  return ip.notation === "mapped" ? ["must not be an IPv4-mapped IPv6 address"] : [];
}

function canonicalProblems(text: string, canonical: string): readonly string[] {
  return text === canonical ? [] : [`must be in canonical form ("${canonical}")`];
}

export function validateIp(text: string, path: string): readonly FieldError[] {
  return ipProblems(text).map((problem) => invalidField(path, text, problem));
}

export function validateLegacyIp(text: string, path: string): readonly FieldError[] {
  return parseIp(text) === undefined ? [invalidField(path, text, NO_IP)] : [];
}

/** Addresses that no endpoint can have, because they mean another host everywhere. */
const SPECIAL: readonly (readonly [problem: (text: string) => string, ...blocks: readonly Cidr[]])[] = [
  [(text) => `may not be unspecified (${text})`, parseBlock("0.0.0.0/32"), parseBlock("::/128")],
  [() => "may not be in the loopback range (127.0.0.0/8, ::1/128)", parseBlock("127.0.0.0/8"), parseBlock("::1/128")],
  [
    () => "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
    parseBlock("169.254.0.0/16"),
    parseBlock("fe80::/10"),
  ],
  [
    () => "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
    parseBlock("224.0.0.0/24"),
    // Any flags of the multicast address.
    ...Array.from({ length: 16 }, (_, flags) => parseBlock(`ff${flags.toString(16)}2::/16`)),
  ],
];

function parseBlock(text: string): Cidr {
  return parseCidr(text)!;
}

/** Used together with `validateIp` or `validateLegacyIp`, as in Kubernetes: both report invalid text. */
export function validateNonSpecialIp(text: string, path: string): readonly FieldError[] {
  const ip = parseIp(text);
  if (ip === undefined) return [invalidField(path, text, "must be a valid IP address")];
  return SPECIAL.filter(([, ...blocks]) => blocks.some((one) => contains(one, ip))).map(([problem]) =>
    invalidField(path, text, problem(text)),
  );
}

/** Kubernetes' messages for an invalid CIDR in a newer field. */
export function cidrProblems(text: string): readonly string[] {
  const problems = strictLegacyCidrProblems(text);
  const block = parseCidr(text);
  return problems.length > 0 || block === undefined ? problems : canonicalProblems(text, formatCidr(block));
}

/** The messages for a legacy field while StrictIPCIDRValidation is on: the format need not be canonical. */
export function strictLegacyCidrProblems(text: string): readonly string[] {
  const block = parseCidr(text);
  const problem = block === undefined ? NO_CIDR : problemOf(block);
  return problem === undefined ? [] : [problem];
}

export function validateCidr(text: string, path: string): readonly FieldError[] {
  return cidrProblems(text).map((problem) => invalidField(path, text, problem));
}

function problemOf(block: Cidr): string | undefined {
  if (block.notation === "leadingZeros") return "must not have leading 0s in IP or prefix length";
  if (block.notation === "mapped") return "must not have an IPv4-mapped IPv6 address";
  return block.address.value === block.network ? undefined : "must not have bits set beyond the prefix length";
}

/** An address with the prefix length of its subnet (`192.168.1.5/24`), in the canonical format. */
export function validateInterfaceAddress(text: string, path: string): readonly FieldError[] {
  const block = parseCidr(text);
  if (block === undefined) {
    const detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
    return [invalidField(path, text, detail)];
  }
  // A prefix that ends before the IPv4 part of a mapped address is shown as Kubernetes computes it: 90 as -6.
  const isWide = block.family !== block.address.family && block.prefixLength > addressBits("IPv4");
  const length = isWide ? block.prefixLength - MAPPED_BITS : block.prefixLength;
  const problems = canonicalProblems(text, `${formatIp(block.address)}/${length}`);
  return problems.map((problem) => invalidField(path, text, problem));
}

export function validateLegacyCidr(text: string, path: string): readonly FieldError[] {
  return parseCidr(text) === undefined ? [invalidField(path, text, NO_CIDR)] : [];
}

/** Warnings for a validated address in a legacy field. */
export function ipWarnings(text: string, path: string): readonly string[] {
  const ip = parseIp(text);
  if (ip === undefined) return [];
  const canonical = formatIp(ip);
  if (ip.notation !== "standard") return [nonStandardWarning("IP address", text, canonical, path)];
  return isOddIPv6(ip, text, canonical)
    ? [`${path}: IPv6 address "${text}" should be in RFC 5952 canonical format ("${canonical}")`]
    : [];
}

export function cidrWarnings(text: string, path: string): readonly string[] {
  const block = parseCidr(text);
  if (block === undefined) return [];
  const canonical = formatCidr(block);
  const warnings: string[] = [];
  if (block.address.value !== block.network && block.family === block.address.family) {
    const single = `${formatIp(block.address)}/${addressBits(block.family)}`;
    warnings.push(
      `${path}: CIDR value "${text}" is ambiguous in this context (should be "${canonical}" or "${single}"?)`,
    );
  }
  if (block.notation !== "standard") warnings.push(nonStandardWarning("CIDR value", text, canonical, path));
  if (warnings.length === 0 && isOddIPv6(block, text, canonical)) {
    warnings.push(`${path}: IPv6 CIDR value "${text}" should be in RFC 5952 canonical format ("${canonical}")`);
  }
  return warnings;
}

function nonStandardWarning(what: string, text: string, canonical: string, path: string): string {
  return `${path}: non-standard ${what} "${text}" will be considered invalid in a future Kubernetes release: use "${canonical}"`;
}

function isOddIPv6({ family }: Pick<Ip, "family">, text: string, canonical: string): boolean {
  return family === "IPv6" && text !== canonical;
}
