import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ensurePki } from "./pki.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

function options(directory: string) {
  return { directory, nodeName: "edge-1", serverNames: ["localhost", "192.0.2.2"], nodeNames: ["edge-1"], now: NOW };
}

t.test("ensurePki() makes users and servers that their authorities vouch for", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const pki = await ensurePki(options(directory));
  const ca = new X509Certificate(pki.ca);
  const agentCa = new X509Certificate(readFileSync(pki.agentCaFile));
  const admin = new X509Certificate(pki.admin.cert);
  t.ok(ca.ca && admin.verify(ca.publicKey) && !admin.verify(agentCa.publicKey));
  t.match(admin.subject, /O=system:masters\nCN=svc-admin/);
  t.match(new X509Certificate(pki.node.cert).subject, /O=system:nodes\nCN=system:node:edge-1/);
  t.ok(admin.checkPrivateKey(createPrivateKey(pki.admin.key)));
  const server = new X509Certificate(readFileSync(pki.apiServer.certFile));
  t.ok(server.verify(ca.publicKey) && server.checkIP("192.0.2.2") && server.checkHost("localhost"));
  for (const { certFile } of [pki.agentServer, pki.agentClient]) {
    t.ok(new X509Certificate(readFileSync(certFile)).verify(agentCa.publicKey));
  }
  for (const name of ["ca", "agent-ca", "admin", "apiserver", "agent-server", "agent-client", "node-edge-1"]) {
    t.equal(statSync(join(directory, `${name}.key`)).mode & 0o777, 0o600, name);
  }
});

t.test("ensurePki() keeps what is good and renews what nears its end or lacks a name", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const first = await ensurePki(options(directory));
  t.equal(first.issued.length, 7);
  t.same((await ensurePki(options(directory))).issued, []);
  const moved = { ...options(directory), serverNames: ["localhost", "192.0.2.2", "198.51.100.1"] };
  t.same((await ensurePki(moved)).issued, ["apiserver"]);
  const later = await ensurePki({ ...moved, now: NOW + 300 * DAY_MS });
  t.same([...later.issued].sort(), ["admin", "agent-client", "agent-server", "apiserver", "node-edge-1"]);
  t.equal(later.ca, first.ca);
});

t.test("ensurePki() makes a leaf anew whose files do not belong together, but never an authority", async (t) => {
  const directory = join(t.testdir({}), "pki");
  const pki = await ensurePki(options(directory));
  writeFileSync(join(directory, "admin.key"), pki.node.key);
  t.same((await ensurePki(options(directory))).issued, ["admin"]);
  writeFileSync(join(directory, "ca.key"), pki.node.key);
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
