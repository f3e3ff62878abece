/** Which of the host's addresses the node is known by. */
import { isIPv4, isIPv6 } from "node:net";

/** What the node reports. `asked` is `--node-ip`. Throws with what to do when the host has no address. */
export function chooseNodeAddresses(asked: readonly string[], addresses: readonly string[]): readonly string[] {
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
