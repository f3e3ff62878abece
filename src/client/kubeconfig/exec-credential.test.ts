import t from "tap";
import { parseExecCredential } from "./exec-credential.ts";

const apiVersion = "client.authentication.k8s.io/v1";

t.test("parseExecCredential() reads tokens, key pairs and their expiration", async (t) => {
  const parse = (status: object) =>
    parseExecCredential(JSON.stringify({ kind: "ExecCredential", apiVersion, status }), apiVersion);
  t.same(parse({ token: "a", clientKeyData: null }), { token: "a", expires: undefined });
  const [clientCertificateData, clientKeyData] = ["-----BEGIN CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----"];
  const expirationTimestamp = "2026-01-01T00:00:00Z";
  t.same(parse({ clientCertificateData, clientKeyData, expirationTimestamp }), {
    pair: { cert: clientCertificateData, key: clientKeyData },
    expires: Date.UTC(2026, 0, 1),
  });
  t.throws(() => parse({ token: 5 }), { message: /a token that is not a string$/ });
});

t.test("parseExecCredential() rejects another kind and another version", async (t) => {
  for (const value of [null, [], { kind: "Other", apiVersion }, { kind: "ExecCredential", apiVersion: "v2" }]) {
    t.throws(() => parseExecCredential(JSON.stringify(value), apiVersion), { message: /responded with another$/ });
  }
});
