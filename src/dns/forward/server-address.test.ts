import t from "tap";
import { parseForwardRule } from "./forward-rule.ts";
import { formatServerAddress, parseServerAddress } from "./server-address.ts";

t.test("parseServerAddress() accepts addresses with and without a port", async (t) => {
  const table: readonly (readonly [text: string, formatted: string])[] = [
    ["192.0.2.53", "192.0.2.53:53"],
    ["192.0.2.53:5353", "192.0.2.53:5353"],
    ["2001:db8::53", "[2001:db8::53]:53"],
    ["[2001:db8::53]:5353", "[2001:db8::53]:5353"],
  ];
  for (const [text, formatted] of table) t.equal(formatServerAddress(parseServerAddress(text)!), formatted);
  for (const text of [
    "",
    "dns.example",
    "192.0.2.53:",
    "192.0.2.53:0",
    "192.0.2.53:65536",
    "[192.0.2.53]:53",
    "[::1]",
  ]) {
    t.equal(parseServerAddress(text), undefined, text);
  }
});

t.test("parseForwardRule() accepts a server, or one of a domain", async (t) => {
  const server = { address: "192.0.2.53", port: 53 };
  t.same(parseForwardRule("192.0.2.53"), { domain: "", server });
  t.same(parseForwardRule("Corp.Example.=192.0.2.53"), { domain: "corp.example", server });
  for (const text of [
    "",
    "=192.0.2.53",
    "corp..example=192.0.2.53",
    "a b=192.0.2.53",
    "corp.example=",
    "corp.example",
  ]) {
    t.equal(parseForwardRule(text), undefined, text);
  }
});
