import t from "tap";
import { isReachable, splitNamedPort } from "./destination.ts";

t.test("splitNamedPort() parses names, ports and schemes", async (t) => {
  t.same(splitNamedPort("web"), { scheme: "", name: "web", port: "" });
  t.same(splitNamedPort("web:http"), { scheme: "", name: "web", port: "http" });
  t.same(splitNamedPort("https:web:"), { scheme: "https", name: "web", port: "" });
  t.same(splitNamedPort("https:web:443"), { scheme: "https", name: "web", port: "443" });
  for (const text of ["", ":80", "ftp:web:1", "https::1", "a:b:c:d"]) t.equal(splitNamedPort(text), undefined, text);
});

t.test("isReachable() is false for loopback, link-local and multicast addresses in any notation", async (t) => {
  for (const yes of ["10.0.0.1", "192.168.1.1", "2001:db8::1", "fd00::1"]) t.ok(isReachable(yes), yes);
  const no = ["", "web", "127.0.0.1", "127.1.2.3", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255"];
  for (const each of [...no, "::1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "0:0:0:0:0:0:0:1"]) {
    t.notOk(isReachable(each), each);
  }
});
