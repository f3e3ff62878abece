/** Parses the destination of a proxied request, and checks its address. */
import { BlockList, isIP } from "node:net";

export interface NamedPort {
  /** Empty when the client does not specify it. */
  readonly scheme: string;
  readonly name: string;
  /** A number or the name of a port; empty when the client does not specify it. */
  readonly port: string;
}

/** Parses `web`, `web:8080` and `https:web:`; undefined for other text. */
export function splitNamedPort(text: string): NamedPort | undefined {
  const parts = text.split(":");
  const [first = "", second = "", third = ""] = parts;
  if (parts.length === 1) return first === "" ? undefined : { scheme: "", name: first, port: "" };
  if (parts.length === 2) return first === "" ? undefined : { scheme: "", name: first, port: second };
  const isScheme = first === "" || first === "http" || first === "https";
  if (parts.length !== 3 || !isScheme || second === "") return undefined;
  return { scheme: first, name: second, port: third };
}

const UNREACHABLE = new BlockList();
// Loopback, link-local, multicast, broadcast and unspecified addresses.
UNREACHABLE.addSubnet("127.0.0.0", 8, "ipv4");
UNREACHABLE.addSubnet("169.254.0.0", 16, "ipv4");
UNREACHABLE.addSubnet("224.0.0.0", 4, "ipv4");
UNREACHABLE.addAddress("0.0.0.0", "ipv4");
UNREACHABLE.addAddress("255.255.255.255", "ipv4");
UNREACHABLE.addAddress("::", "ipv6");
UNREACHABLE.addAddress("::1", "ipv6");
UNREACHABLE.addSubnet("fe80::", 10, "ipv6");
UNREACHABLE.addSubnet("ff00::", 8, "ipv6");

/** Whether an object's status may direct requests of the API server to the address. */
export function isReachable(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && !UNREACHABLE.check(address, version === 6 ? "ipv6" : "ipv4");
}
