import type { Headers } from "../http/message.ts";
import { isIpAddress } from "../std/net/ip.ts";

/** The addresses of a request: those that proxies name, then that of the connection, which cannot be forged. */
export function sourceIps(headers: Headers, peerAddress: string): readonly string[] {
  const forwarded = headers["x-forwarded-for"];
  const realIp = headers["x-real-ip"];
  if (forwarded === undefined && realIp === undefined) return addressOfPeer(peerAddress);
  const found = (forwarded ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter(isIpAddress);
  if (realIp !== undefined && isIpAddress(realIp) && !found.includes(realIp)) found.push(realIp);
  const [peer] = addressOfPeer(peerAddress);
  if (peer !== undefined && found.at(-1) !== peer) found.push(peer);
  return found;
}

/** The last peer: most requests come from few. */
const latest: { peerAddress: string; ips: readonly string[] } = { peerAddress: "", ips: [] };

/** Empty when the peer has no IP address, as that of a unix socket. */
function addressOfPeer(peerAddress: string): readonly string[] {
  if (peerAddress !== latest.peerAddress) {
    latest.peerAddress = peerAddress;
    latest.ips = isIpAddress(peerAddress) ? [peerAddress] : [];
  }
  return latest.ips;
}
