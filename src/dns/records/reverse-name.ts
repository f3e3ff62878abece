/** Names of addresses for reverse look-up: `10.0.96.10.in-addr.arpa` and `….ip6.arpa`. */
import { formatIp, parseIp } from "../../std/net/ip.ts";

const IPV4 = ".in-addr.arpa";
const IPV6 = ".ip6.arpa";

/** The address in its canonical text; undefined when the name is not that of one address. */
export function parseReverseName(name: string): string | undefined {
  if (name.endsWith(IPV4)) {
    const ip = parseIp(name.slice(0, -IPV4.length).split(".").reverse().join("."));
    return ip?.family === "IPv4" && ip.notation === "standard" ? formatIp(ip) : undefined;
  }
  if (!name.endsWith(IPV6)) return undefined;
  const digits = name.slice(0, -IPV6.length).split(".");
  if (digits.length !== 32 || !digits.every((digit) => /^[0-9a-f]$/.test(digit))) return undefined;
  return formatIp({ family: "IPv6", value: BigInt(`0x${digits.reverse().join("")}`) });
}
