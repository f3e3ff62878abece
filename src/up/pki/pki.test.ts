import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { writeKeyPair } from "../../auth/pki/key-pair.ts";
import { ensurePki, type Pki } from "./pki.ts";

const NOW = Date.UTC(2027, 0, 1);
const DAY_MS = 86_400_000;

function options(directory: string) {
  return { directory, serverNames: ["localhost", "192.0.2.2"], now: NOW };
}

t.test("ensurePki() issues certificates that the CAs verify", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const pki = await ensurePki(options(directory));
  const ca = new X509Certificate(pki.ca);
  const agentCa = new X509Certificate(readFileSync(pki.agentCaFile));
  const admin = new X509Certificate(pki.admin.cert);
  t.ok(ca.ca && admin.verify(ca.publicKey) && !admin.verify(agentCa.publicKey));
  t.match(admin.subject, /O=system:masters\nCN=svc-admin/);
  t.ok(admin.checkPrivateKey(createPrivateKey(pki.admin.key)));
  const server = new X509Certificate(readFileSync(pki.apiServer.certFile));
  t.ok(server.verify(ca.publicKey) && server.checkIP("192.0.2.2") && server.checkHost("localhost"));
  const caller = new X509Certificate(readFileSync(pki.agentClient.certFile));
  t.ok(caller.verify(agentCa.publicKey));
  t.match(caller.subject, /O=system:masters/);
  const proxy = new X509Certificate(readFileSync(pki.frontProxyClient.certFile));
  t.ok(proxy.verify(new X509Certificate(readFileSync(pki.frontProxyCaFile)).publicKey) && !proxy.verify(ca.publicKey));
  for (const name of ["ca", "agent-ca", "front-proxy-ca", "admin", "apiserver", "agent-client", "front-proxy-client"]) {
    t.equal(statSync(join(directory, `${name}.key`)).mode & 0o777, 0o600, name);
  }
});

t.test("ensurePki() keeps valid certificates and renews those that expire soon or lack a name", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const first = await ensurePki(options(directory));
  t.equal(first.issued.length, 7);
  t.same((await ensurePki(options(directory))).issued, []);
  const moved = { ...options(directory), serverNames: ["localhost", "192.0.2.2", "198.51.100.1"] };
  t.same((await ensurePki(moved)).issued, ["apiserver"]);
  const later = await ensurePki({ ...moved, now: NOW + 300 * DAY_MS });
  t.same([...later.issued].sort(), ["admin", "agent-client", "apiserver", "front-proxy-client"]);
  t.equal(later.ca, first.ca);
});

t.test("ensurePki() tolerates clocks that are not set or years ahead, and keeps the keys of CAs", async (t) => {
  const isValid = (pem: string, at: number) => {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    return validFromDate.getTime() <= at && at < validToDate.getTime();
  };
  const all = (pki: Pki) => [pki.ca, pki.agentCa, pki.admin.cert, readFileSync(pki.apiServer.certFile, "utf8")];
  for (const born of [0, NOW, NOW + 365 * DAY_MS]) {
    const directory = join(t.testdir({}), `born-${born}`);
    const first = await ensurePki({ ...options(directory), now: born });
    const publicKey = (pki: Pki) => new X509Certificate(pki.ca).publicKey.export({ type: "spki", format: "pem" });
    for (const at of [0, NOW, NOW + 365 * DAY_MS, NOW + 20 * 365 * DAY_MS, NOW]) {
      const pki = await ensurePki({ ...options(directory), now: at });
      t.equal(publicKey(pki), publicKey(first), "an authority is who it was");
      t.ok(all(pki).every((pem) => isValid(pem, at)));
      t.ok(new X509Certificate(pki.admin.cert).verify(new X509Certificate(first.ca).publicKey));
    }
    const now = await ensurePki({ ...options(directory), now: NOW });
    t.ok(
      all(now).every((pem) => isValid(pem, 0) && isValid(pem, NOW + 60 * DAY_MS)),
      "valid without a clock",
    );
  }
});

t.test(
  "ensurePki() keeps the key of an authority that earlier versions made, though its time is to come",
  async (t) => {
    const directory = join(t.testdir({}), "pki");
    const earlier = await createCa("svc-ca", 3650, NOW);
    await writeKeyPair({ certFile: join(directory, "ca.crt"), keyFile: join(directory, "ca.key") }, earlier);
    const { ca } = await ensurePki({ ...options(directory), now: 1000 });
    t.equal(readFileSync(join(directory, "ca.key"), "utf8"), earlier.key);
    t.ok(new X509Certificate(ca).verify(new X509Certificate(earlier.cert).publicKey));
    t.equal(new X509Certificate(ca).subject, new X509Certificate(earlier.cert).subject);
  },
);

t.test("ensurePki() replaces a leaf with another subject, as earlier versions issued it", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const { agentClient, agentAuthority } = await ensurePki(options(directory));
  const authority = {
    cert: readFileSync(agentAuthority.certFile, "utf8"),
    key: readFileSync(agentAuthority.keyFile, "utf8"),
  };
  const groupless = { commonName: "svc-apiserver-agent-client", usages: ["client"], days: 365 } as const;
  await writeKeyPair(agentClient, await issueCertificate(authority, groupless, NOW));
  t.same((await ensurePki(options(directory))).issued, ["agent-client"]);
});

t.test("ensurePki() replaces a leaf whose key does not match, but never a CA", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const pki = await ensurePki(options(directory));
  const other = readFileSync(pki.agentClient.keyFile);
  writeFileSync(join(directory, "admin.key"), other);
  t.same((await ensurePki(options(directory))).issued, ["admin"]);
  writeFileSync(join(directory, "ca.key"), other);
  await t.rejects(ensurePki(options(directory)), /its key is not the one in/);
});

t.test("ensurePki() restricts the permissions of keys and returns their files", async (t) => {
  const directory = join(t.testdir({}), "pki");
  t.same((await ensurePki(options(directory))).restricted, []);
  chmodSync(join(directory, "ca.key"), 0o644);
  chmodSync(directory, 0o755);
  t.same((await ensurePki(options(directory))).restricted, [directory, join(directory, "ca.key")]);
  t.equal(statSync(join(directory, "ca.key")).mode & 0o777, 0o600);
  t.equal(statSync(directory).mode & 0o777, 0o700);
});
