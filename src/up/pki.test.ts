import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { writeKeyPair } from "../auth/key-pair.ts";
import { issueCertificate } from "../auth/pki.ts";
import { ensurePki } from "./pki.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

function options(directory: string) {
  return { directory, serverNames: ["localhost", "192.0.2.2"], now: NOW };
}

t.test("ensurePki() makes users and servers that their authorities vouch for", async (t) => {
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
  for (const name of ["ca", "agent-ca", "admin", "apiserver", "agent-client"]) {
    t.equal(statSync(join(directory, `${name}.key`)).mode & 0o777, 0o600, name);
  }
});

t.test("ensurePki() keeps what is good and renews what nears its end or lacks a name", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const first = await ensurePki(options(directory));
  t.equal(first.issued.length, 5);
  t.same((await ensurePki(options(directory))).issued, []);
  const moved = { ...options(directory), serverNames: ["localhost", "192.0.2.2", "198.51.100.1"] };
  t.same((await ensurePki(moved)).issued, ["apiserver"]);
  const later = await ensurePki({ ...moved, now: NOW + 300 * DAY_MS });
  t.same([...later.issued].sort(), ["admin", "agent-client", "apiserver"]);
  t.equal(later.ca, first.ca);
});

t.test("ensurePki() makes a leaf anew that is for somebody else, as earlier versions made it", async (t) => {
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

t.test("ensurePki() makes a leaf anew whose files do not belong together, but never an authority", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const pki = await ensurePki(options(directory));
  const other = readFileSync(pki.agentClient.keyFile);
  writeFileSync(join(directory, "admin.key"), other);
  t.same((await ensurePki(options(directory))).issued, ["admin"]);
  writeFileSync(join(directory, "ca.key"), other);
  await t.rejects(ensurePki(options(directory)), /its key is not the one in/);
});

t.test("ensurePki() takes keys away from other eyes and says which", async (t) => {
  const directory = join(t.testdir({}), "pki");
  t.same((await ensurePki(options(directory))).tightened, []);
  chmodSync(join(directory, "ca.key"), 0o644);
  chmodSync(directory, 0o755);
  t.same((await ensurePki(options(directory))).tightened, [directory, join(directory, "ca.key")]);
  t.equal(statSync(join(directory, "ca.key")).mode & 0o777, 0o600);
  t.equal(statSync(directory).mode & 0o777, 0o700);
});
