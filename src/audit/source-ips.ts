import type { Headers } from "../http/message.ts";
import { isIpAddress } from "../std/net/ip.ts";

/** The addresses of a request: those that proxies name, then that of the connection, which cannot be forged. */
export function sourceIps(headers: Headers, peerAddress: string): readonly string[] {
  const found = (headers["x-forwarded-for"] ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter(isIpAddress);
  const realIp = headers["x-real-ip"];
  if (realIp !== undefined && isIpAddress(realIp) && !found.includes(realIp)) found.push(realIp);
  const peer = withoutMapping(peerAddress);
  if (isIpAddress(peer) && found.at(-1) !== peer) found.push(peer);
  return found;
}

/** Node shows an IPv4 peer of an IPv6 socket as `::ffff:10.0.0.1`. */
function withoutMapping(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
