import t from "tap";
import { chooseNodeAddresses } from "./addresses.ts";

t.test("chooseNodeAddresses() takes one address of each family, or the requested ones", async (t) => {
  t.same(chooseNodeAddresses([], ["192.0.2.2", "198.51.100.9", "2001:db8::2"]), ["192.0.2.2", "2001:db8::2"]);
  t.same(chooseNodeAddresses([], ["198.51.100.9"]), ["198.51.100.9"]);
  t.same(chooseNodeAddresses(["203.0.113.1"], ["198.51.100.9"]), ["203.0.113.1"]);
});

t.test("chooseNodeAddresses() gives advice on a host that has only loopback", async (t) => {
  t.throws(() => chooseNodeAddresses([], []), /type dummy.*--node-ip=192\.168\.99\.1/);
});
