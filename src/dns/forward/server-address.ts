/** Addresses of DNS servers: `192.0.2.53`, `192.0.2.53:5353`, `[2001:db8::53]:5353`. */
import { isIP, isIPv6 } from "node:net";

export interface ServerAddress {
  readonly address: string;
  readonly port: number;
}

export const DNS_PORT = 53;
const PORT_MAX = 65_535;

/** Undefined when malformed. */
export function parseServerAddress(text: string): ServerAddress | undefined {
  if (isIP(text) !== 0) return { address: text, port: DNS_PORT };
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  const address = match?.[1] ?? match?.[2] ?? "";
  const port = Number(match?.[3]);
  const valid = match?.[1] === undefined ? isIP(address) === 4 : isIPv6(address);
  return valid && port >= 1 && port <= PORT_MAX ? { address, port } : undefined;
}

export function formatServerAddress({ address, port }: ServerAddress): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
