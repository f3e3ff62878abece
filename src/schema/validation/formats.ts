/** The string formats that Kubernetes 1.33 checks in custom resources; it ignores all others. */
import { isIP, isIPv6 } from "node:net";
import { parseDuration } from "../value/time.ts";

type Check = (text: string) => boolean;

/** `date-time` and `datetime` are one name. */
export function formatOf(name: string): Check | undefined {
  return formats.get(name.replaceAll("-", ""));
}

const octet = String.raw`\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*`;
const label = String.raw`[a-zA-Z0-9\p{S}\p{L}]`;

const inner = String.raw`[a-zA-Z0-9\-\p{S}\p{L}]`;
const top = String.raw`[a-zA-Z\p{L}]{2,63}`;
const HOSTNAME = new RegExp(
  `^(?:${label}(?:-?${label}{0,62})?|(?:${label}(?:${inner}{0,61}${label})?\\.)+${top})$`,
  "u",
);
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const TIME = /^(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/;
const MAC = /^[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?$/i;
const DOTTED_MAC = /^[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4}|(?:\.[0-9a-f]{4}){7})?$/i;
const URI = /^(?:[a-z][a-z0-9+.-]*:(?:\/\/(?:[^/?#@\s]*@)?(?:\[[^\]\s]*\]|[^:/?#\s[\]]*)(?::\d*)?)?|\/)[^\s\x7f]*$/i;
const EMAIL = /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~\u0080-\u{10ffff}-]+@[^\s@<>(),;:"]+$/u;
const NAMED_EMAIL = /^[^<>@]*<([^<>]+)>$/;
/** `1h`, `2 days 3 hours`. */
const UNIT = [
  "ns|nanoseconds?",
  "us|µs|micros?|microseconds?",
  "ms|millis?|milliseconds?",
  "s|secs?|seconds?",
  "m|mins?|minutes?",
  "h|hrs?|hours?",
  "d|days?",
  "w|wks?|weeks?",
].join("|");
const DURATION = new RegExp(String.raw`^\s*(?:\d+(?:\.\d+)?\s*(?:${UNIT})\s*)+$`, "i");
/** The first digits identify the card's issuer and determine the length of the number. */
const CARD = new RegExp(
  [
    String.raw`^(?:4\d{12}(?:\d{3}){0,2}`,
    String.raw`5[1-5]\d{14}`,
    String.raw`(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}`,
    String.raw`6(?:011|5\d\d)\d{12}`,
    String.raw`3[47]\d{13}`,
    String.raw`3(?:0[0-5]|[68]\d)\d{11}`,
    String.raw`(?:2131|1800|35\d{3})\d{11}`,
    String.raw`6[27]\d{14})$`,
  ].join("|"),
);

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (year === undefined) return false;
  const at = new Date(0);
  at.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return at.getUTCMonth() === Number(month) - 1 && at.getUTCDate() === Number(day);
}

function isDateTime(text: string): boolean {
  const [day = "", time, ...rest] = text.toLowerCase().split("t");
  if (time === undefined || rest.length > 0 || !isDate(day)) return false;
  const [, hour = "99", minute = "", second = ""] = TIME.exec(time) ?? [];
  return hour <= "23" && minute <= "59" && second <= "59";
}

function isCidr(text: string): boolean {
  const [address = "", bits = "", ...rest] = text.split("/");
  if (rest.length > 0 || address.includes("%") || isIP(address) === 0 || !/^\d{1,3}$/.test(bits)) return false;
  return Number(bits) <= (isIPv6(address) ? 128 : 32);
}

function isEmail(text: string): boolean {
  const address = NAMED_EMAIL.exec(text)?.[1] ?? text;
  return EMAIL.test(address) && !/^\.|\.\.|\.@|@\.|\.$/.test(address);
}

/** The Luhn checksum. */
function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, "");
  if (!CARD.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  return (
    [...digits].reduce((sum, digit, index) => sum + (index + 1) * (digit === "X" ? 10 : Number(digit)), 0) % 11 === 0
  );
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^\d{13}$/.test(digits)) return false;
  return [...digits].reduce((sum, digit, index) => sum + Number(digit) * (index % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}

function matches(pattern: RegExp): Check {
  return (text) => pattern.test(text);
}

const formats: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["bsonobjectid", matches(/^[0-9a-f]{24}$/i)],
  ["uri", matches(URI)],
  ["email", isEmail],
  // Both the whole name and each label have a maximum length.
  [
    "hostname",
    (text) => text.length <= 255 && HOSTNAME.test(text) && text.split(".").every((part) => part.length <= 63),
  ],
  ["ipv4", (text) => isIP(text) !== 0 && text.includes(".") && !text.includes("%")],
  ["ipv6", (text) => isIPv6(text) && !text.includes("%")],
  ["cidr", isCidr],
  ["mac", (text) => MAC.test(text) || DOTTED_MAC.test(text)],
  ["uuid", matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ["uuid3", matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ["uuid4", matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ["uuid5", matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ["isbn", (text) => isIsbn10(text) || isIsbn13(text)],
  ["isbn10", isIsbn10],
  ["isbn13", isIsbn13],
  ["creditcard", isCreditCard],
  ["ssn", matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ["hexcolor", matches(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ["rgbcolor", matches(new RegExp(`^rgb\\(${octet},${octet},${octet}\\)$`))],
  ["byte", matches(BASE64)],
  ["password", () => true],
  ["date", isDate],
  ["duration", (text) => parseDuration(text) !== undefined || DURATION.test(text)],
  ["datetime", isDateTime],
]);
