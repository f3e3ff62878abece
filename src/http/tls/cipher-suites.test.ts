import { getCiphers } from "node:tls";
import t from "tap";
import { parseTlsVersion, toOpenSslCiphers } from "./cipher-suites.ts";

t.test("parseTlsVersion() accepts the names of versions in flags", async (t) => {
  t.equal(parseTlsVersion("VersionTLS12"), "TLSv1.2");
  t.equal(parseTlsVersion("VersionTLS13"), "TLSv1.3");
  t.equal(parseTlsVersion(""), undefined);
});

t.test("toOpenSslCiphers() returns OpenSSL's names of suites", async (t) => {
  t.equal(toOpenSslCiphers([]), undefined, "the listener's own choice");
  const names = toOpenSslCiphers([
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
  ])?.split(":");
  t.same(names?.slice(3), [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
  ]);
  const known = new Set(getCiphers());
  for (const name of names ?? []) t.ok(known.has(name.toLowerCase()), `${name} is offered by the runtime`);
});

t.test("toOpenSslCiphers() refuses suites that OpenSSL does not support, with their name", async (t) => {
  t.throws(() => toOpenSslCiphers(["TLS_RSA_WITH_RC4_128_SHA"]), /TLS_RSA_WITH_RC4_128_SHA is not supported/);
});
