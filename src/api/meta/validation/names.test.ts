import t from "tap";
import {
  configMapKey,
  dns1123Label,
  dns1123Subdomain,
  environmentName,
  labelValue,
  pathSegment,
  portName,
  portNumber,
  qualifiedName,
} from "./names.ts";

t.test("dns1123Label() accepts lower-case names of up to 63 bytes", async (t) => {
  t.same(dns1123Label("web-1"), []);
  for (const bad of ["", "Web", "a.b", "-a", "a-", "ä", "a\n"])
    t.equal(dns1123Label(bad).length, 1, JSON.stringify(bad));
  t.match(dns1123Label("a".repeat(64))[0], "must be no more than 63 characters");
});

t.test("dns1123Subdomain() accepts dotted names of up to 253 bytes", async (t) => {
  t.same(dns1123Subdomain("a.b-c.d"), []);
  t.equal(dns1123Subdomain("a..b").length, 1);
  t.equal(dns1123Subdomain(`${"a".repeat(254)}`).length, 1);
});

t.test("qualifiedName() checks the prefix and the name separately", async (t) => {
  t.same(qualifiedName("example.com/Name_1"), []);
  t.same(qualifiedName("app"), []);
  t.match(qualifiedName("/x")[0], "prefix part must be non-empty");
  t.match(qualifiedName("a/")[0], "name part must be non-empty");
  t.match(qualifiedName("a/b/c")[0], "a qualified name must consist");
  t.match(qualifiedName("UPPER.com/x")[0], "prefix part a lowercase RFC 1123 subdomain");
});

t.test("labelValue(), configMapKey(), environmentName() and portName() reject what Kubernetes rejects", async (t) => {
  t.same(
    [
      labelValue(""),
      labelValue("a_b.c-d"),
      configMapKey("key.name"),
      environmentName("A B"),
      portName("http-1"),
    ].flat(),
    [],
  );
  for (const bad of ["-a", "a b", "x".repeat(64)]) t.equal(labelValue(bad).length, 1, bad);
  t.same(configMapKey(".."), ["must not be '..'"]);
  t.same(configMapKey("..data"), ["must not start with '..'"]);
  t.equal(environmentName("A=B").length, 1);
  t.equal(environmentName("").length, 1);
  t.same(portName("8080"), ["must contain at least one letter (a-z)"]);
  t.same(portName("a--b"), ["must not contain consecutive hyphens"]);
});

t.test("pathSegment() rejects path separators, portNumber() numbers out of range", async (t) => {
  t.same(pathSegment(".."), ["may not be '..'"]);
  t.same(pathSegment("a/b%c"), ["may not contain '/'", "may not contain '%'"]);
  t.same(portNumber(443), []);
  for (const bad of [0, 65536, 1.5, Number.NaN]) t.equal(portNumber(bad).length, 1);
});
