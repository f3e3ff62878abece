/**
 * IP addresses and ranges as Kubernetes 1.33 takes them: old fields still accept leading zeros and addresses that map
 * IPv4 into IPv6, and tell the client so.
 */
import { type FieldError, invalidField } from "../../schema/field-error.ts";

export interface IpAddress {
  readonly family: 4 | 6;
  /** 4 or 16 bytes; an address that maps IPv4 into IPv6 has 4. */
  readonly bytes: readonly number[];
}

export interface IpRange {
  readonly address: IpAddress;
  readonly bits: number;
}

/** Undefined when the text is no address. `010.001.1.1` is read as 10.1.1.1. */
export function parseIp(text: string): IpAddress | undefined {
  if (!text.includes(":")) return parseIp4(text);
  const bytes = parseIp6(text);
  if (bytes === undefined) return undefined;
  return isMapped(bytes) ? { family: 4, bytes: bytes.slice(12) } : { family: 6, bytes };
}

function parseIp4(text: string): IpAddress | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d+$/.test(part) && Number(part) <= 255)) return undefined;
  return { family: 4, bytes: parts.map(Number) };
}

function parseIp6(text: string): readonly number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map((half, i) => bytesOf(half, i === halves.length - 1));
  if (head === undefined) return undefined;
  if (halves.length === 1) return head.length === 16 ? head : undefined;
  if (tail === undefined || head.length + tail.length > 14) return undefined;
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail];
}

/** Only the end of an address may be written as IPv4. */
function bytesOf(groups: string, last: boolean): readonly number[] | undefined {
  if (groups === "") return [];
  const parts = groups.split(":");
  const bytes: number[] = [];
  for (const [i, part] of parts.entries()) {
    if (last && i === parts.length - 1 && part.includes(".")) {
      const embedded = parseIp4(part);
      if (embedded === undefined) return undefined;
      bytes.push(...embedded.bytes);
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      const group = Number.parseInt(part, 16);
      bytes.push(group >> 8, group & 0xff);
    } else return undefined;
  }
  return bytes;
}

function isMapped(bytes: readonly number[]): boolean {
  return bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
}

/** The one way to write an address: RFC 5952 for IPv6. */
export function formatIp({ family, bytes }: IpAddress): string {
  if (family === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0));
  let [start, length] = [0, 1];
  for (let from = 0; from < 8; from++) {
    let to = from;
    while (to < 8 && groups[to] === 0) to++;
    if (to - from > length) [start, length] = [from, to - from];
  }
  const text = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(":");
  return length < 2 ? text(groups) : `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`;
}

/** Undefined when the text is no range. Bits beyond the prefix are kept: see `maskedRange`. */
export function parseCidr(text: string): IpRange | undefined {
  const [before = "", size = "", ...rest] = text.split("/");
  const address = parseIp(before);
  if (address === undefined || rest.length > 0 || !/^\d{1,3}$/.test(size)) return undefined;
  const mapped = address.family === 4 && before.includes(":");
  const bits = Number(size) - (mapped ? 96 : 0);
  return bits >= 0 && bits <= address.bytes.length * 8 ? { address, bits } : undefined;
}

/** The range with the bits beyond its prefix cleared. */
export function maskedRange({ address, bits }: IpRange): IpRange {
  const bytes = address.bytes.map((byte, i) => {
    const kept = Math.min(8, Math.max(0, bits - 8 * i));
    return byte & (0xff << (8 - kept)) & 0xff;
  });
  return { address: { family: address.family, bytes }, bits };
}

export function formatCidr({ address, bits }: IpRange): string {
  return `${formatIp(address)}/${bits}`;
}

export function validateIp(path: string, text: string): readonly FieldError[] {
  const detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
  return parseIp(text) === undefined ? [invalidField(path, text, detail)] : [];
}

export function validateCidr(path: string, text: string): readonly FieldError[] {
  const detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
  return parseCidr(text) === undefined ? [invalidField(path, text, detail)] : [];
}

/** Text with leading zeros, or of IPv4 mapped into IPv6, which later releases refuse. */
function isLegacy(address: IpAddress, text: string): boolean {
  if (text.includes(":")) return address.family === 4 || /(^|[:.])0\d+\./.test(text) || /\.0\d/.test(text);
  return text !== formatIp(address);
}

/** What a client is told of an address that is accepted, but badly written. */
export function ipWarnings(path: string, text: string): readonly string[] {
  const address = parseIp(text);
  if (address === undefined) return [];
  const right = JSON.stringify(formatIp(address));
  if (isLegacy(address, text)) {
    const refused = "will be considered invalid in a future Kubernetes release";
    return [`${path}: non-standard IP address ${JSON.stringify(text)} ${refused}: use ${right}`];
  }
  if (formatIp(address) === text) return [];
  return [`${path}: IPv6 address ${JSON.stringify(text)} should be in RFC 5952 canonical format (${right})`];
}

export function cidrWarnings(path: string, text: string): readonly string[] {
  const range = parseCidr(text);
  if (range === undefined) return [];
  const quoted = JSON.stringify(text);
  const [before = ""] = text.split("/");
  const masked = maskedRange(range);
  const right = JSON.stringify(formatCidr(masked));
  if (formatIp(masked.address) !== formatIp(range.address)) {
    const single = JSON.stringify(`${formatIp(range.address)}/${8 * range.address.bytes.length}`);
    return [`${path}: CIDR value ${quoted} is ambiguous in this context (should be ${right} or ${single}?)`];
  }
  if (isLegacy(range.address, before) || /\/0\d/.test(text)) {
    const refused = "will be considered invalid in a future Kubernetes release";
    return [`${path}: non-standard CIDR value ${quoted} ${refused}: use ${right}`];
  }
  if (formatIp(range.address) === before) return [];
  return [`${path}: IPv6 CIDR value ${quoted} should be in RFC 5952 canonical format (${right})`];
}
