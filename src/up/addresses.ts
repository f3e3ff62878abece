/** The addresses of this host, and which of them the node is known by. */
import { isIPv4, isIPv6 } from "node:net";
import type { networkInterfaces } from "node:os";

type Interfaces = ReturnType<typeof networkInterfaces>;

/** Bridges and links that container engines make: their addresses are not the host's. */
const containerInterface = /^(?:svc[0-9]|svc-|cni[0-9]|docker[0-9]|br-|veth|virbr|flannel|cali)/;

/** Every address but loopback and link-local ones, the default route's interface first, IPv4 before IPv6. */
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

/** What the node reports. `asked` is `--node-ip`. Throws with what to do when the host has no address. */
export function nodeAddresses(asked: readonly string[], addresses: readonly string[]): readonly string[] {
  if (asked.length > 0) return asked;
  const first = addresses[0];
  if (first === undefined) {
    throw new Error(
      "Cannot find an address for the node: every network interface but loopback is without one. Bring one up, or make " +
        "one that needs no cable (ip link add svc-node type dummy; ip addr add 192.168.99.1/32 dev svc-node; " +
        "ip link set svc-node up) and name it: --node-ip=192.168.99.1",
    );
  }
  const second = addresses.find((address) => (isIPv4(first) ? isIPv6(address) : isIPv4(address)));
  return second === undefined ? [first] : [first, second];
}

/** The interface of the default route in `/proc/net/route`. */
function defaultInterface(routes: string): string | undefined {
  for (const line of routes.split("\n").slice(1)) {
    const [name, destination] = line.split("\t");
    if (destination === "00000000") return name;
  }
  return undefined;
}
