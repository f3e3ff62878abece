/** Chooses the addresses that the node reports. */
import { isIPv4, isIPv6 } from "node:net";
import { resolveNodeIps } from "../../agent/node/network/node-ips.ts";

/** `requested` is `--node-ip`. Throws with advice when the host has no address. */
export function chooseNodeAddresses(requested: readonly string[], addresses: readonly string[]): readonly string[] {
  if (requested.length > 0) return resolveNodeIps(requested, addresses);
  const first = addresses[0];
  if (first === undefined) {
    throw new Error(
      "Cannot find an address for the node: no network interface but loopback has one. Bring one up, or create a " +
        "dummy interface (ip link add svc-node type dummy; ip addr add 192.168.99.1/32 dev svc-node; " +
        "ip link set svc-node up) and set --node-ip=192.168.99.1",
    );
  }
  const second = addresses.find((address) => (isIPv4(first) ? isIPv6(address) : isIPv4(address)));
  return second === undefined ? [first] : [first, second];
}
