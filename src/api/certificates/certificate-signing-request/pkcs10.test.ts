import { webcrypto } from "node:crypto";
import "reflect-metadata";
import { Pkcs10CertificateRequestGenerator } from "@peculiar/x509";
import t from "tap";
import { requestProblem } from "./pkcs10.ts";

async function request(
  algorithm: webcrypto.EcKeyGenParams | webcrypto.RsaHashedKeyGenParams | { readonly name: "Ed25519" },
  hash: string,
) {
  const keys = await webcrypto.subtle.generateKey(algorithm as webcrypto.EcKeyGenParams, true, ["sign", "verify"]);
  const signingAlgorithm = { name: algorithm.name, hash };
  return await Pkcs10CertificateRequestGenerator.create({ name: "CN=jo", keys, signingAlgorithm }, webcrypto as never);
}

t.test("requestProblem() accepts requests of RSA, ECDSA and Ed25519 keys", async (t) => {
  const exponent = new Uint8Array([1, 0, 1]);
  const rsa = { name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: exponent, hash: "SHA-256" } as const;
  const made = [
    await request({ name: "ECDSA", namedCurve: "P-256" }, "SHA-256"),
    await request({ name: "ECDSA", namedCurve: "P-384" }, "SHA-384"),
    await request(rsa, "SHA-256"),
    await request({ name: "Ed25519" }, "SHA-512"),
  ];
  for (const one of made) t.equal(requestProblem(one.toString("pem")), undefined);
});

t.test("requestProblem() returns the error of an invalid request", async (t) => {
  const made = await request({ name: "ECDSA", namedCurve: "P-256" }, "SHA-256");
  const der = Buffer.from(made.rawData);
  const pem = (bytes: Buffer) =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
  const forged = Buffer.from(der);
  forged[forged.indexOf("jo")] = 0x6b;
  t.equal(requestProblem(pem(der)), undefined);
  t.match(requestProblem(pem(forged)), /signature does not match/);
  t.match(requestProblem(pem(der.subarray(0, 40))), /malformed/);
  t.match(requestProblem(pem(Buffer.alloc(0))), /malformed/);
  const nulls = Buffer.from("0500".repeat(20_000), "hex");
  t.match(requestProblem(pem(nulls)), /more than 10000 values/);
  for (const text of ["", "xyz", pem(der).replaceAll("CERTIFICATE REQUEST", "CERTIFICATE")]) {
    t.equal(requestProblem(text), "PEM block type must be CERTIFICATE REQUEST");
  }
  // A wrong length at each position.
  for (let at = 0; at < der.length; at++) {
    const odd = Buffer.from(der);
    odd[at] = 0xff;
    t.equal(typeof (requestProblem(pem(odd)) ?? ""), "string");
  }
});
