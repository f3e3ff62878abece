import t from "tap";
import { hostAddresses } from "../std/net/host-addresses.ts";
import { networkNames } from "./network-names.ts";

t.test("the addresses of a cluster's own devices are not those of the host", async (t) => {
  const entry = { address: "10.244.0.0", netmask: "", mac: "", cidr: null, family: "IPv4", internal: false } as const;
  for (const suffix of [undefined, "0a1b2c3d"]) {
    const { bridge, device } = networkNames(suffix);
    t.same(hostAddresses({ [bridge]: [entry], [device]: [entry] }, undefined), [], `${bridge}, ${device}`);
  }
});
