import t from "tap";
import { hostAddresses, readHostAddress } from "./host-addresses.ts";

type Interfaces = Parameters<typeof hostAddresses>[0];

function address(text: string, internal = false) {
  const family = text.includes(":") ? "IPv6" : "IPv4";
  return {
    address: text,
    family,
    internal,
    netmask: "",
    mac: "",
    cidr: null,
    ...(family === "IPv6" ? { scopeid: 0 } : {}),
  };
}

const interfaces = {
  lo: [address("127.0.0.1", true), address("::1", true)],
  docker0: [address("172.17.0.1")],
  wlan0: [address("198.51.100.9")],
  eth0: [address("2001:db8::2"), address("fe80::1"), address("192.0.2.2")],
} as Interfaces;
const routes = "Iface\tDestination\tGateway\nwlan0\t0000A8C0\t0\neth0\t00000000\t010200C0\n";

t.test("hostAddresses() puts the default route's IPv4 address first and leaves container bridges out", async (t) => {
  t.same(hostAddresses(interfaces, routes), ["192.0.2.2", "198.51.100.9", "2001:db8::2"]);
});

t.test("hostAddresses() returns nothing for a host that has only loopback", async (t) => {
  t.same(hostAddresses({ lo: [address("127.0.0.1", true)] } as Interfaces, undefined), []);
});

t.test("readHostAddress() always resolves with an address", async (t) => {
  t.match(await readHostAddress(), /^[0-9a-f.:]+$/);
});
