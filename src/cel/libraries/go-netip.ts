/** The errors of Go's `net/netip` for malformed addresses. */
import { goQuote } from "../../schema/value/go-quote.ts";

/** Undefined for a valid address. */
export function addressError(text: string): string | undefined {
  const reason = reasonOf(text);
  return reason === undefined ? undefined : `ParseAddr(${goQuote(text)}): ${reason}`;
}

function reasonOf(text: string): string | undefined {
  switch (/[.:%]/.exec(text)?.[0]) {
    case ".":
      return ipv4Error(text);
    case ":":
      return ipv6Error(text);
    case "%":
      return "missing IPv6 address";
    default:
      return "unable to parse IP";
  }
}

function ipv4Error(text: string): string | undefined {
  const digits = /^\d$/;
  let field = "";
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (digits.test(character)) {
      if (field === "0") return "IPv4 field has octet with leading zero";
      field += character;
      if (Number(field) > 255) return "IPv4 field has value >255";
    } else if (character === ".") {
      if (field === "" || i === text.length - 1) return at("IPv4 field must have at least one digit", text.slice(i));
      if (dots === 3) return "IPv4 address too long";
      dots++;
      field = "";
    } else {
      return at("unexpected character", text.slice(i));
    }
  }
  return dots < 3 ? "IPv4 address too short" : undefined;
}

const GROUPS = 8;

function ipv6Error(text: string): string | undefined {
  const percent = text.indexOf("%");
  if (percent === text.length - 1) return "zone must be a non-empty string";
  let rest = percent < 0 ? text : text.slice(0, percent);
  let shortened = rest.startsWith("::");
  if (shortened) rest = rest.slice(2);
  if (rest === "") return undefined;
  let groups = 0;
  while (groups < GROUPS) {
    const group = /^[0-9a-f]*/i.exec(rest)![0];
    if (group.length > 4) return at("each group must have 4 or less digits", rest);
    if (group === "") return at("each colon-separated field must have at least one digit", rest);
    if (rest[group.length] === ".") {
      if (!shortened && groups !== GROUPS - 2) {
        return at("embedded IPv4 address must replace the final 2 fields of the address", rest);
      }
      if (groups > GROUPS - 2) {
        return at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
      }
      const error = ipv4Error(rest);
      if (error !== undefined) return error;
      groups += 2;
      rest = "";
      break;
    }
    groups++;
    rest = rest.slice(group.length);
    if (rest === "") break;
    if (!rest.startsWith(":")) return at("unexpected character, want colon", rest);
    if (rest === ":") return at("colon must be followed by more characters", rest);
    rest = rest.slice(1);
    if (!rest.startsWith(":")) continue;
    if (shortened) return at("multiple :: in address", rest);
    shortened = true;
    rest = rest.slice(1);
    if (rest === "") break;
  }
  if (rest !== "") return at("trailing garbage after address", rest);
  if (groups < GROUPS) return shortened ? undefined : "address string too short";
  return shortened ? "the :: must expand to at least one field of zeros" : undefined;
}

function at(reason: string, rest: string): string {
  return `${reason} (at ${goQuote(rest)})`;
}
