import { X509Certificate } from "node:crypto";
import t from "tap";
import { createCa } from "./certificate-authority.ts";
import { createCertificateRequest, signCertificateRequest } from "./certificate-signing.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ca = await createCa("signer", 1, NOW);
const { request } = await createCertificateRequest({ commonName: "jane", organizations: ["dev"] });

t.test(
  "signCertificateRequest() counts the lifetime from now below eight hours, and else from the start",
  async (t) => {
    const cases = [
      [HOUR, HOUR],
      [8 * HOUR - 1000, 8 * HOUR - 1000],
      [8 * HOUR, 8 * HOUR - 5 * MINUTE],
      [20 * HOUR, 20 * HOUR - 5 * MINUTE],
      [100 * HOUR, Date.parse(new X509Certificate(ca.cert).validTo) - NOW],
    ] as const;
    for (const [lifetimeMs, end] of cases) {
      const pem = await signCertificateRequest(ca, request, { usages: ["client auth"], lifetimeMs, now: NOW });
      const { validFrom, validTo } = new X509Certificate(pem);
      t.equal(Date.parse(validFrom), NOW - 5 * MINUTE);
      t.equal(Date.parse(validTo), NOW + end, `lifetime ${lifetimeMs}`);
    }
  },
);

t.test("signCertificateRequest() writes extended usages once each, in the order of certificates", async (t) => {
  const usages = ["netscape sgc", "s/mime", "client auth", "email protection", "server auth", "microsoft sgc"];
  const pem = await signCertificateRequest(ca, request, { usages, lifetimeMs: HOUR, now: NOW });
  const found = new X509Certificate(pem).keyUsage as unknown as string[];
  const ids = ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.4"];
  t.same(found, [...ids, "1.3.6.1.4.1.311.10.3.3", "2.16.840.1.113730.4.1"]);
});

t.test("signCertificateRequest() fails when the signer has expired", async (t) => {
  const options = { usages: ["client auth"], lifetimeMs: HOUR, now: NOW + 48 * HOUR };
  await t.rejects(signCertificateRequest(ca, request, options), /the signer has expired/);
});
