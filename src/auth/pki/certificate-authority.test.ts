import { X509Certificate } from "node:crypto";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createCa, issueCertificate } from "./certificate-authority.ts";
import { isReusable, readKeyPair, writeFileDurably, writeKeyPair } from "./key-pair.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const ca = await createCa("svc-ca", 3650, now);
const names = ["shop-1", "192.0.2.1", "2001:db8::1"];
const serving = await issueCertificate(
  ca,
  { commonName: "svc", alternativeNames: names, usages: ["server"], days: 365 },
  now,
);

t.test("issueCertificate() signs for names, users and groups", async (t) => {
  const certificate = new X509Certificate(serving.cert);
  t.ok(certificate.verify(new X509Certificate(ca.cert).publicKey));
  t.ok(certificate.checkHost("shop-1"));
  t.ok(certificate.checkIP("192.0.2.1"));
  t.match(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"], "server authentication only");
  const client = await issueCertificate(
    ca,
    { commonName: "system:node:a, O=system:masters", organizations: ["system:nodes"], usages: ["client"], days: 1 },
    now,
  );
  const { O: groups } = new X509Certificate(client.cert).toLegacyObject().subject as { O?: string | string[] };
  t.equal(groups, "system:nodes", "a name that looks like an attribute stays a name");
});

t.test("issueCertificate() limits the validity to that of the authority", async (t) => {
  const brief = await createCa("brief", 1, now);
  const leaf = await issueCertificate(brief, { commonName: "x", usages: ["client"], days: 365 }, now);
  t.equal(new X509Certificate(leaf.cert).validTo, new X509Certificate(brief.cert).validTo);
});

t.test("isReusable() is false near the expiration, for other names and for another authority", async (t) => {
  const day = 86_400_000;
  t.ok(isReusable(serving, ca.cert, names, now, 30));
  t.notOk(isReusable(serving, ca.cert, names, now + 340 * day, 30));
  t.notOk(isReusable(serving, ca.cert, [...names, "other"], now, 30));
  t.notOk(isReusable(serving, ca.cert, ["192.0.2.9"], now, 30));
  t.notOk(isReusable(serving, (await createCa("svc-ca", 1, now)).cert, names, now, 30));
  t.notOk(isReusable(serving, ca.cert, names, now - 2 * day, 30), "not valid yet");
});

t.test(
  "writeKeyPair() writes the key with mode 0600; readKeyPair() rejects a key of another certificate",
  async (t) => {
    const directory = t.testdir({});
    const files = { certFile: join(directory, "pki", "a.crt"), keyFile: join(directory, "pki", "a.key") };
    t.equal(await readKeyPair(files), undefined);
    await writeKeyPair(files, serving);
    t.equal((await stat(files.keyFile)).mode & 0o777, 0o600);
    t.same(await readKeyPair(files), serving);
    await writeFile(files.keyFile, ca.key);
    await t.rejects(readKeyPair(files), /Cannot use .*a\.crt/);
  },
);

t.test("writeFileDurably() sets the mode even if an interrupted write left a file", async (t) => {
  const path = join(t.testdir({ "secret.new": "half" }), "secret");
  await writeFileDurably(path, "whole", 0o600);
  t.equal((await stat(path)).mode & 0o777, 0o600);
});
