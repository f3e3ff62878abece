import t from "tap";
import { makeCertificate } from "../../testing/http/test-certificates.ts";
import { CertificateSelector, normalizeAddress } from "./server-names.ts";

const pair = async (
  label: string,
  certificate: { cn?: string; dns?: string[]; ip?: string[] },
  names: string[] = [],
) => {
  const { cert, key } = await makeCertificate({
    subject: [{ CN: [certificate.cn ?? label] }],
    names: certificate.dns ?? [],
    addresses: certificate.ip ?? [],
  });
  return { label, cert, key, names };
};

const fallback = await pair("fallback", { cn: "Fallback Inc.", dns: ["kubernetes", "spare.example.com"] });
const choice = new CertificateSelector(fallback, [
  await pair("first", { dns: ["a.example.com", "both.example.com"], cn: "Some Company" }),
  await pair("wild", { dns: ["ignored.test"] }, ["*.example.com", "192.0.2.1", "fd00::1"]),
  await pair("explicit", { dns: ["c.test"] }, ["Both.Example.com", "deep.sub.example.com"]),
  await pair("second", { dns: ["a.example.com", "b.example.com", "*.apps.test"], ip: ["192.0.2.9"] }),
  await pair("named", { cn: "cn.test" }),
  await pair("addressed", { cn: "192.0.2.10" }),
]);

t.test(
  "CertificateSelector.forName() prefers the exact name, then the wildcard, then a certificate that is valid for it",
  (t) => {
    const cases: Readonly<Record<string, string>> = {
      "a.example.com": "first",
      "A.EXAMPLE.com.": "first",
      "b.example.com": "second",
      "both.example.com": "explicit",
      "x.example.com": "wild",
      "x.y.example.com": "fallback",
      "deep.sub.example.com": "explicit",
      "example.com": "fallback",
      "x.apps.test": "second",
      "cn.test": "named",
      "192.0.2.10": "fallback",
      "spare.example.com": "wild",
      kubernetes: "fallback",
      "ignored.test": "wild",
      "c.test": "explicit",
      "": "fallback",
      "nowhere.test": "fallback",
    };
    for (const [name, label] of Object.entries(cases)) t.equal(choice.forName(name).label, label, name);
    t.end();
  },
);

t.test("CertificateSelector.forAddress() matches listed addresses only", (t) => {
  const cases: Readonly<Record<string, string>> = {
    "192.0.2.1": "wild",
    "::ffff:192.0.2.1": "wild",
    "fd00::1": "wild",
    "192.0.2.9": "fallback",
    "192.0.2.10": "fallback",
    "127.0.0.1": "fallback",
    "": "fallback",
  };
  for (const [local, label] of Object.entries(cases)) t.equal(choice.forAddress(local).label, label, local);
  t.same(choice.addresses(), ["192.0.2.1", "fd00::1"]);
  t.equal(normalizeAddress("fe80::1%eth0"), "fe80::1");
  t.end();
});

t.test(
  "CertificateSelector matches any single label by a wildcard alone, and throws for an invalid certificate",
  async (t) => {
    const any = new CertificateSelector(fallback, [await pair("any", { cn: "*" })]);
    t.equal(any.forName("localhost").label, "any");
    t.equal(any.forName("a.b").label, "fallback");
    t.throws(() => new CertificateSelector({ cert: "x", key: "y" }, []));
  },
);
