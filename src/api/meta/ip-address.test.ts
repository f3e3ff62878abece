import t from "tap";
import { cidrWarnings, formatIp, ipWarnings, maskedRange, parseCidr, parseIp, validateIp } from "./ip-address.ts";

t.test("parseIp reads what old fields accept, formatIp writes it one way", async (t) => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["10.0.0.1", "10.0.0.1"],
    ["010.001.1.1", "10.1.1.1"],
    ["::ffff:1.2.3.4", "1.2.3.4"],
    ["::", "::"],
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"],
    ["1:0:3:4:5:6:7:8", "1:0:3:4:5:6:7:8"],
    ["256.0.0.1", undefined],
    ["1.2.3", undefined],
    ["1::2::3", undefined],
    ["1:2:3:4:5:6:7:8:9", undefined],
    ["fe80::1%eth0", undefined],
    ["", undefined],
  ];
  for (const [text, wanted] of cases) {
    const address = parseIp(text);
    t.equal(address === undefined ? undefined : formatIp(address), wanted, text);
    t.equal(validateIp("f", text).length, wanted === undefined ? 1 : 0);
  }
});

t.test("ipWarnings tells of addresses that are badly written", async (t) => {
  t.same(ipWarnings("f", "10.1.1.1"), []);
  t.match(ipWarnings("f", "010.001.1.1"), [/non-standard IP address "010.001.1.1" .*: use "10.1.1.1"$/]);
  t.match(ipWarnings("f", "::ffff:1.2.3.4"), [/non-standard .*: use "1.2.3.4"$/]);
  t.match(ipWarnings("f", "2001:DB8::1"), [/should be in RFC 5952 canonical format \("2001:db8::1"\)$/]);
});

t.test("cidrWarnings tells of ranges that are badly written", async (t) => {
  t.same(cidrWarnings("f", "10.0.0.0/8"), []);
  t.match(cidrWarnings("f", "10.1.2.3/8"), [/is ambiguous .*\(should be "10.0.0.0\/8" or "10.1.2.3\/32"\?\)$/]);
  t.match(cidrWarnings("f", "010.0.0.0/8"), [/non-standard CIDR value .*: use "10.0.0.0\/8"$/]);
  t.equal(parseCidr("10.0.0.0/33"), undefined);
  t.same(maskedRange(parseCidr("10.255.0.0/12")!).address.bytes, [10, 240, 0, 0]);
});
