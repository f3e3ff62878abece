import { generateKeyPairSync } from "node:crypto";
import t from "tap";
import { keyPairProblem } from "./tls-key-pair.ts";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();

t.test("keyPairProblem() returns the messages of Go's crypto/tls", async (t) => {
  t.match(keyPairProblem("a", key), "failed to find any PEM data in certificate input");
  t.match(keyPairProblem(key, key), "PEM inputs may have been switched");
  const empty = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
  t.match(keyPairProblem(empty, "b"), "failed to find any PEM data in key input");
  t.match(keyPairProblem(empty, empty), "found a certificate rather than a key");
  t.match(keyPairProblem(empty, key), "malformed certificate");
});
