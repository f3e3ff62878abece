import t from "tap";
import { conflist, gatewayOf } from "./cni-config.ts";

const options = { confDir: "/c", leaseDir: "/l", bridge: "svc0", podCidr: "10.9.0.0/16" };

t.test("conflist() masquerades and maps ports only with iptables", async (t) => {
  t.match(conflist({ ...options, hasIptables: true }), {
    plugins: [
      { type: "bridge", bridge: "svc0", ipMasq: true, ipam: { ranges: [[{ subnet: "10.9.0.0/16" }]] } },
      { type: "portmap" },
    ],
  });
  const { plugins } = conflist({ ...options, hasIptables: false }) as { readonly plugins: readonly unknown[] };
  t.match(plugins, [{ type: "bridge", ipMasq: false }]);
  t.equal(plugins.length, 1);
});

t.test("gatewayOf() is the first address of the range", async (t) => {
  t.equal(gatewayOf("10.244.0.0/24"), "10.244.0.1");
  t.equal(gatewayOf("10.244.7.9/20"), "10.244.0.1");
  t.equal(gatewayOf("200.0.255.128/25"), "200.0.255.129");
});

t.test("gatewayOf() refuses text that is not an IPv4 range of sufficient size", async (t) => {
  for (const text of ["", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/x", "2001:db8::/112", "10.0.0/24"]) {
    t.throws(() => gatewayOf(text), /must be an IPv4 range/, text);
  }
});
