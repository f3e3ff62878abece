import t from "tap";
import { formatOf } from "./formats.ts";

const cases: Readonly<Record<string, { readonly good: readonly string[]; readonly bad: readonly string[] }>> = {
  "date-time": {
    good: ["2024-02-29T23:59:59Z", "2024-01-01T00:00:00.5+02:00"],
    bad: ["2023-02-29T00:00:00Z", "noon", "2024-01-01T24:00:00Z"],
  },
  date: { good: ["2024-02-29"], bad: ["2023-02-29", "24-1-1"] },
  duration: { good: ["1h30m", "-5s", "0", "2 days", "1 hour 3 minutes"], bad: ["", "soon", "1 fortnight"] },
  byte: { good: ["AAEC", "AA=="], bad: ["", "A", "A*=="] },
  uuid: { good: ["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"], bad: ["123e4567"] },
  uuid4: { good: ["123e4567-e89b-42d3-a456-426614174000"], bad: ["123e4567-e89b-12d3-a456-426614174000"] },
  ipv4: { good: ["10.0.0.1", "::ffff:1.2.3.4"], bad: ["10.0.0.256", "01.2.3.4", "::1"] },
  ipv6: { good: ["::1", "2001:db8::"], bad: ["10.0.0.1", "fe80::1%eth0"] },
  cidr: { good: ["10.0.0.0/8", "::/0"], bad: ["10.0.0.0", "10.0.0.0/33", "::/129"] },
  mac: { good: ["00:00:5e:00:53:01", "0000.5e00.5301"], bad: ["00:00:5e", "00-00:5e:00:53:01"] },
  hostname: { good: ["a", "www.example.com", "x-1.example"], bad: ["", "-a", "a..b", `${"a".repeat(64)}.com`] },
  uri: { good: ["https://example.com/a?b#c", "/path", "urn:x:y"], bad: ["example", "http://a b", ""] },
  email: { good: ["a@example.com", "Ann <ann@example.com>"], bad: ["a", "@example.com", "a@", "a b@example.com"] },
  hexcolor: { good: ["#fff", "00ff00"], bad: ["#ffff", "red"] },
  rgbcolor: { good: ["rgb(0, 128,255)"], bad: ["rgb(0,0,256)"] },
  ssn: { good: ["123-45-6789"], bad: ["123-45-678"] },
  creditcard: { good: ["4111 1111 1111 1111"], bad: ["4111 1111 1111 1112"] },
  isbn: { good: ["0-306-40615-2", "978-3-16-148410-0"], bad: ["0-306-40615-3", "978-3-16-148410-1"] },
  password: { good: ["", "anything"], bad: [] },
  bsonobjectid: { good: ["507f1f77bcf86cd799439011"], bad: ["507f"] },
};

for (const [name, { good, bad }] of Object.entries(cases)) {
  t.test(`formatOf() checks ${name}`, async (t) => {
    for (const text of good) t.ok(formatOf(name)?.(text), text);
    for (const text of bad) t.notOk(formatOf(name)?.(text), JSON.stringify(text));
  });
}

t.test("formatOf() returns undefined for formats that Kubernetes does not check", async (t) => {
  t.same([formatOf("int32"), formatOf("nope"), formatOf("constructor")], [undefined, undefined, undefined]);
});

t.test("formatOf() returns checks that take linear time", async (t) => {
  const began = performance.now();
  for (const name of Object.keys(cases)) {
    for (const unit of ["a", "1", "1s ", "a.", "a@", "::", "AA", "-", " "]) formatOf(name)?.(`${unit.repeat(20_000)}!`);
  }
  t.ok(performance.now() - began < 2000);
});
