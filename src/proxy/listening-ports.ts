/** The ports at which programs of this host listen. */
import { readFile } from "node:fs/promises";
import { formatIp } from "../std/net/ip.ts";

const FILES = [
  ["tcp", "/proc/net/tcp"],
  ["tcp", "/proc/net/tcp6"],
  ["udp", "/proc/net/udp"],
  ["udp", "/proc/net/udp6"],
] as const;

/** Of TCP sockets LISTEN, of UDP sockets CLOSE, which means not connected. */
const LISTENING = { tcp: "0A", udp: "07" } as const;

/** `tcp 80 192.0.2.1`, or `tcp 80 *` for all addresses. */
export async function readListeningPorts(read = readText): Promise<ReadonlySet<string>> {
  const ports = new Set<string>();
  for (const [protocol, file] of FILES) {
    for (const line of (await read(file)).split("\n").slice(1)) {
      const [, local = "", , state] = line.trim().split(/\s+/);
      const [address = "", port = ""] = local.split(":");
      if (state !== LISTENING[protocol]) continue;
      ports.add(`${protocol} ${Number.parseInt(port, 16)} ${/^0+$/.test(address) ? "*" : decodeAddress(address)}`);
    }
  }
  return ports;
}

async function readText(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}

/** The kernel prints words of 32 bits, the last byte first. */
function decodeAddress(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.map((word) => word.match(/../g)?.toReversed().join("")).join("");
  return formatIp({ family: hex.length === 8 ? "IPv4" : "IPv6", value: BigInt(`0x${bytes}`) });
}
