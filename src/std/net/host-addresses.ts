/** The addresses of this host. */
import { readFile } from "node:fs/promises";
import { BlockList, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

type Interfaces = ReturnType<typeof networkInterfaces>;

/** Bridges and links that container engines make: their addresses are not the host's. */
const containerInterface = /^(?:svc[0-9]|svcx?-|cni[0-9]|docker[0-9]|br-|veth|virbr|flannel|cali)/;

/** All addresses except loopback and link-local ones: IPv4 before IPv6, the default route's interface first. */
export function hostAddresses(interfaces: Interfaces, routes: string | undefined): readonly string[] {
  const preferred = defaultInterface(routes ?? "");
  const found = Object.entries(interfaces)
    .filter(([name]) => !containerInterface.test(name))
    .flatMap(([name, addresses]) => (addresses ?? []).map((entry) => ({ name, ...entry })))
    .filter(({ internal, address }) => !internal && !/^(?:169\.254\.|fe80:)/i.test(address));
  const rank = (entry: (typeof found)[number]): number =>
    (entry.name === preferred ? 0 : 1) + (entry.family === "IPv4" ? 0 : 2);
  return found.sort((a, b) => rank(a) - rank(b)).map(({ address }) => address);
}

/** The address at which other hosts reach this one; loopback when it has no other. */
export async function readHostAddress(): Promise<string> {
  return (await readHostAddresses())[0] ?? "127.0.0.1";
}

/** All addresses at which other hosts can reach this one; see `hostAddresses`. */
export async function readHostAddresses(): Promise<readonly string[]> {
  const routes = await readFile("/proc/net/route", "utf8").catch(() => undefined);
  return hostAddresses(networkInterfaces(), routes);
}

/** Those of `addresses` that no interface of this host has, loopback included. */
export function findForeignAddresses(
  addresses: readonly string[],
  interfaces: Interfaces = networkInterfaces(),
): readonly string[] {
  const own = new BlockList();
  for (const { address, family } of Object.values(interfaces).flatMap((all) => all ?? [])) {
    own.addAddress(address, family === "IPv6" ? "ipv6" : "ipv4");
  }
  return addresses.filter((address) => !own.check(address, isIPv6(address) ? "ipv6" : "ipv4"));
}

/** The interface of the default route in `/proc/net/route`. */
function defaultInterface(routes: string): string | undefined {
  for (const line of routes.split("\n").slice(1)) {
    const [name, destination] = line.split("\t");
    if (destination === "00000000") return name;
  }
  return undefined;
}
