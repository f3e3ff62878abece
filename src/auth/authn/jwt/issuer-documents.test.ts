import { generateKeyPairSync } from "node:crypto";
import t from "tap";
import { parseDiscovery, parseKeySet } from "./issuer-documents.ts";

const issuer = "https://issuer.example.com";

t.test("parseDiscovery() returns the URL of the keys of the expected issuer", async (t) => {
  const parse = (document: unknown) => parseDiscovery(document, issuer, `${issuer}/discovery`);
  t.equal(parse({ issuer, jwks_uri: `${issuer}/keys`, more: 1 }), `${issuer}/keys`);
  t.throws(() => parse({ issuer: "https://other", jwks_uri: "x" }), { message: /got "https:\/\/other"$/ });
  t.throws(() => parse(null), { message: /did not match/ });
  for (const jwks_uri of [undefined, 5, "keys", "http://issuer.example.com/keys"]) {
    t.throws(() => parse({ issuer, jwks_uri }), { message: /has no https URL in jwks_uri/ }, String(jwks_uri));
  }
});

t.test("parseKeySet() reads the signing keys and skips others", async (t) => {
  const jwk = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });
  const others = [{ ...jwk, use: "enc" }, { ...jwk, kid: 5 }, { kty: "oct", k: "x" }, { kty: "EC" }, null];
  const keys = parseKeySet({ keys: [{ ...jwk, kid: "a" }, jwk, ...others] }, "https://keys");
  t.same(
    keys.map(({ keyId, publicKey }) => [keyId, publicKey.export({ format: "jwk" })]),
    [
      ["a", jwk],
      ["", jwk],
    ],
  );
  t.throws(() => parseKeySet({ keys: 1 }, "https://keys"), { message: "https://keys has no keys" });
});
