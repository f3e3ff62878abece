import { isIP } from "node:net";
import fc from "fast-check";
import t from "tap";
import { contains, formatCidr, formatIp, isIpAddress, parseCidr, parseIp } from "./ip.ts";

t.test("parseIp() accepts what Go's older parser accepts, and reports the notation", async (t) => {
  const cases: readonly (readonly [text: string, canonical: string, form: string])[] = [
    ["10.9.8.7", "10.9.8.7", "standard"],
    ["0.0.0.0", "0.0.0.0", "standard"],
    ["010.0.0.001", "10.0.0.1", "leadingZeros"],
    ["::", "::", "standard"],
    ["::1", "::1", "standard"],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1", "standard"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3", "standard"],
    ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7", "standard"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", "standard"],
    ["00001::", "1::", "leadingZeros"],
    ["64:ff9b::1.2.3.4", "64:ff9b::102:304", "standard"],
    ["::ffff:1.2.3.4", "1.2.3.4", "mapped"],
    ["::ffff:0102:0304", "1.2.3.4", "mapped"],
    ["::ffff:1.2.3.04", "1.2.3.4", "leadingZeros"],
  ];
  for (const [text, canonical, form] of cases) {
    const ip = parseIp(text);
    t.equal(ip && formatIp(ip), canonical, text);
    t.equal(ip?.notation, form, text);
  }
});

t.test("parseIp() rejects everything else", async (t) => {
  const bad = ["", "x", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "1..2.3", " 1.2.3.4", "1.2.3.4/8", "0x1.2.3.4"];
  const bad6 = [":", ":::", "1:2", "1::2::3", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "::1%eth0", "::g", "::10000"];
  const badTail = ["1.2.3.4::", "::1.2.3.4:5", "1:2:3:4:5:6:7:1.2.3.4", "1:"];
  for (const text of [...bad, ...bad6, ...badTail]) t.equal(parseIp(text), undefined, text);
});

t.test("parseCidr() returns the block and the address before the slash", async (t) => {
  const cases: readonly (readonly [text: string, canonical: string, address: string, form: string])[] = [
    ["10.1.2.3/8", "10.0.0.0/8", "10.1.2.3", "standard"],
    ["0.0.0.0/0", "0.0.0.0/0", "0.0.0.0", "standard"],
    ["10.0.0.0/08", "10.0.0.0/8", "10.0.0.0", "leadingZeros"],
    ["2001:db8:1::/32", "2001:db8::/32", "2001:db8:1::", "standard"],
    ["::ffff:10.1.2.3/104", "10.0.0.0/8", "10.1.2.3", "mapped"],
    ["::ffff:10.1.2.3/64", "::/64", "10.1.2.3", "mapped"],
  ];
  for (const [text, canonical, address, form] of cases) {
    const block = parseCidr(text);
    t.equal(block && formatCidr(block), canonical, text);
    t.equal(block && formatIp(block.address), address, text);
    t.equal(block?.notation, form, text);
  }
  for (const text of ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::/129", "x/8", "10.0.0.0/8/8"]) {
    t.equal(parseCidr(text), undefined, text);
  }
});

t.test("contains() compares within a family only", async (t) => {
  const inside = (block: string, ip: string) => contains(parseCidr(block)!, parseIp(ip)!);
  t.ok(inside("10.0.0.0/24", "10.0.0.255"));
  t.ok(inside("10.0.0.0/24", "::ffff:10.0.0.1"));
  t.notOk(inside("10.0.0.0/24", "10.0.1.0"));
  t.notOk(inside("::/0", "10.0.0.1"));
  t.ok(inside("::/0", "2001:db8::1"));
});

const addressLike = fc.string({ unit: fc.constantFrom(..."0123456789abcdefF:."), maxLength: 24 });
const groups = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 });

t.test("parseIp() and Node agree on what an address is, but for leading zeros", async () => {
  fc.assert(
    fc.property(addressLike, (text) => {
      const ip = parseIp(text);
      return ip?.notation === "leadingZeros" || (ip !== undefined) === (isIP(text) !== 0);
    }),
    { numRuns: 3000 },
  );
});

t.test("formatIp() writes IPv6 as URLs do, and parseIp() reads it again", async () => {
  fc.assert(
    fc.property(groups, (parts) => {
      const ip = parseIp(parts.map((part) => part.toString(16)).join(":"))!;
      const text = formatIp(ip);
      const again = parseIp(text)!;
      const inUrl = ip.notation === "mapped" || new URL(`http://[${text}]/`).hostname === `[${text}]`;
      return inUrl && again.value === ip.value && again.family === ip.family;
    }),
  );
});

t.test("isIpAddress accepts what net.isIP accepts, without zones", (t) => {
  const addresses = ["127.0.0.1", "::1", "::", "2001:db8::a", "::ffff:192.0.2.1", "64:ff9b::192.0.2.33", "FE80::1"];
  const others = ["", "localhost", "1.2.3", "01.2.3.4", "1.2.3.256", "[::1]", "::1:", "1::2::3", "12345::", "host:80"];
  for (const text of [...addresses, ...others]) t.equal(isIpAddress(text), isIP(text) !== 0, JSON.stringify(text));
  t.end();
});
