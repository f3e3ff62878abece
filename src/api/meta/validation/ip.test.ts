import t from "tap";
import {
  cidrWarnings,
  ipProblems,
  ipWarnings,
  strictLegacyCidrProblems,
  strictLegacyIpProblems,
  validateCidr,
  validateInterfaceAddress,
  validateIp,
  validateLegacyCidr,
  validateLegacyIp,
  validateNonSpecialIp,
} from "./ip.ts";

t.test("validateIp() requires the canonical format, validateLegacyIp() accepts any", async (t) => {
  const cases: readonly (readonly [text: string, problem: string | undefined, legacy: boolean])[] = [
    ["10.0.0.1", undefined, true],
    ["2001:db8::1", undefined, true],
    ["2001:DB8::1", 'must be in canonical form ("2001:db8::1")', true],
    ["2001:db8::0001", 'must be in canonical form ("2001:db8::1")', true],
    ["2001:db8:0:0:0:0:0:1", 'must be in canonical form ("2001:db8::1")', true],
    ["2001:db8::1.2.3.4", 'must be in canonical form ("2001:db8::102:304")', true],
    ["2001:00db8::1", "must not have leading 0s", true],
    ["10.0.0.01", "must not have leading 0s", true],
    ["::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address", true],
    ["x", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", false],
  ];
  for (const [text, problem, legacy] of cases) {
    t.same(ipProblems(text), problem === undefined ? [] : [problem], text);
    t.same(validateIp(text, "p")[0]?.detail, problem, text);
    t.equal(validateLegacyIp(text, "p").length === 0, legacy, text);
  }
});

t.test("validateCidr() rejects bits beyond the prefix length", async (t) => {
  const cases: readonly (readonly [text: string, problem: string | undefined, legacy: boolean])[] = [
    ["10.0.0.0/8", undefined, true],
    ["2001:db8::/64", undefined, true],
    ["2001:DB8::/64", 'must be in canonical form ("2001:db8::/64")', true],
    ["2001:db8:0::/64", 'must be in canonical form ("2001:db8::/64")', true],
    ["2001:DB8::1/64", "must not have bits set beyond the prefix length", true],
    ["10.0.0.0/08", "must not have leading 0s in IP or prefix length", true],
    ["10.1.0.0/8", "must not have bits set beyond the prefix length", true],
    ["010.0.0.0/8", "must not have leading 0s in IP or prefix length", true],
    ["::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address", true],
    ["10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)", false],
  ];
  for (const [text, problem, legacy] of cases) {
    t.same(validateCidr(text, "p")[0]?.detail, problem, text);
    t.equal(validateLegacyCidr(text, "p").length === 0, legacy, text);
  }
});

t.test("the strict rules of legacy fields accept any format of IPv6", async (t) => {
  t.same(strictLegacyIpProblems("2001:DB8::0001"), []);
  t.same(strictLegacyIpProblems("010.0.0.1"), ["must not have leading 0s"]);
  t.same(strictLegacyIpProblems("::ffff:10.0.0.1"), ["must not be an IPv4-mapped IPv6 address"]);
  t.same(strictLegacyCidrProblems("2001:DB8:0::/64"), []);
  t.same(strictLegacyCidrProblems("2001:DB8::1/64"), ["must not have bits set beyond the prefix length"]);
});

t.test("validateInterfaceAddress() requires the canonical format and accepts bits beyond the prefix", async (t) => {
  const cases: readonly (readonly [text: string, problem: string | undefined])[] = [
    ["192.168.1.5/24", undefined],
    ["2001:db8::1/64", undefined],
    ["2001:DB8::1/64", 'must be in canonical form ("2001:db8::1/64")'],
    ["192.168.001.5/24", 'must be in canonical form ("192.168.1.5/24")'],
    ["192.168.1.5/024", 'must be in canonical form ("192.168.1.5/24")'],
    ["::ffff:192.168.1.5/120", 'must be in canonical form ("192.168.1.5/24")'],
    ["::ffff:192.168.1.5/20", 'must be in canonical form ("192.168.1.5/20")'],
    ["::ffff:192.168.1.5/90", 'must be in canonical form ("192.168.1.5/-6")'],
    ["192.168.1.5", "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"],
  ];
  for (const [text, problem] of cases) t.same(validateInterfaceAddress(text, "p")[0]?.detail, problem, text);
});

t.test("validateNonSpecialIp() rejects loopback, link-local and multicast addresses", async (t) => {
  const cases: readonly (readonly [text: string, problem: RegExp | undefined])[] = [
    ["10.0.0.1", undefined],
    ["2001:db8::1", undefined],
    ["0.0.0.0", /^may not be unspecified \(0\.0\.0\.0\)$/],
    ["::", /^may not be unspecified \(::\)$/],
    ["127.9.9.9", /loopback/],
    ["::1", /loopback/],
    ["169.254.1.1", /link-local range/],
    ["fe80::1", /link-local range/],
    ["224.0.0.9", /link-local multicast/],
    ["ff12::1", /link-local multicast/],
    ["224.0.1.1", undefined],
    ["x", /must be a valid IP address/],
  ];
  for (const [text, problem] of cases) {
    const [error] = validateNonSpecialIp(text, "p");
    if (problem === undefined) t.equal(error, undefined, text);
    else t.match(error?.detail, problem, text);
  }
});

t.test("ipWarnings() and cidrWarnings() name the canonical format", async (t) => {
  t.same(ipWarnings("10.0.0.1", "p"), []);
  t.same(ipWarnings("nonsense", "p"), []);
  t.same(ipWarnings("010.0.0.1", "spec.ip"), [
    'spec.ip: non-standard IP address "010.0.0.1" will be considered invalid in a future Kubernetes release: use "10.0.0.1"',
  ]);
  t.same(ipWarnings("2001:DB8::1", "p"), [
    'p: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
  ]);
  t.same(cidrWarnings("10.0.0.0/8", "p"), []);
  t.same(cidrWarnings("10.1.2.3/8", "p"), [
    'p: CIDR value "10.1.2.3/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.1.2.3/32"?)',
  ]);
  t.same(cidrWarnings("10.0.0.0/08", "p"), [
    'p: non-standard CIDR value "10.0.0.0/08" will be considered invalid in a future Kubernetes release: use "10.0.0.0/8"',
  ]);
  t.same(cidrWarnings("2001:DB8::/32", "p"), [
    'p: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")',
  ]);
});
