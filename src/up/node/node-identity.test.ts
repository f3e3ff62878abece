import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { CertificateFiles } from "../../agent/certificates/certificate-files.ts";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { writeKeyPair } from "../../auth/pki/key-pair.ts";
import { loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { type NodeIdentityOptions, prepareNodeIdentity } from "./node-identity.ts";

const NOW = Date.now();
const [ca, agentCa, otherCa] = [
  await createCa("ca", 100, NOW),
  await createCa("agent-ca", 100, NOW),
  await createCa("ca", 100, NOW),
];
const signed = (authority: typeof ca, name: string) =>
  issueCertificate(
    authority,
    { commonName: `system:node:${name}`, organizations: ["system:nodes"], usages: ["client"], days: 9 },
    NOW,
  );

function options(directory: string): NodeIdentityOptions {
  return {
    nodeName: "n1",
    server: "https://127.0.0.1:6443",
    ca: ca.cert,
    agentCa: agentCa.cert,
    token: "sesame",
    svcconfig: join(directory, "node.svcconfig"),
    bootstrapSvcconfig: join(directory, "bootstrap.svcconfig"),
    certDir: join(directory, "agent/pki"),
    pkiDirectory: join(directory, "pki"),
    controllers: ["*"],
    now: NOW,
  };
}

t.test(
  "prepareNodeIdentity() prepares the bootstrap of a new node, and fails without the signing controllers",
  async (t) => {
    const at = options(t.testdir());
    t.equal(await prepareNodeIdentity(at), false);
    t.match(await loadKubeconfig(at.bootstrapSvcconfig), { server: at.server, token: "sesame" });
    t.notOk(existsSync(at.svcconfig), "so that the agent requests a certificate");
    await t.rejects(prepareNodeIdentity({ ...at, controllers: ["csrsigning", "scheduler"] }), {
      message: /^Cannot bootstrap node n1: --embedded-controllers disables csrapproving;/,
    });
  },
);

t.test("prepareNodeIdentity() migrates the certificates of earlier versions", async (t) => {
  const at = options(t.testdir());
  const files = (name: string) => ({
    certFile: join(at.pkiDirectory, `${name}.crt`),
    keyFile: join(at.pkiDirectory, `${name}.key`),
  });
  const [client, serving] = [await signed(ca, "n1"), await signed(agentCa, "n1")];
  await writeKeyPair(files("node-n1"), client);
  await writeKeyPair(files("agent-server"), serving);
  for (const _start of [1, 2]) {
    t.equal(await prepareNodeIdentity({ ...at, controllers: [] }), true, "without any controller");
    t.match(await loadKubeconfig(at.svcconfig), { server: at.server, user: "system:node:n1" });
    t.match((await loadKubeconfig(at.svcconfig)).cert, client.cert.trim());
    t.match(readFileSync(new CertificateFiles(at.certDir, "server").current, "utf8"), serving.cert.trim());
    t.same(readdirSync(at.pkiDirectory), [], "the keys lie in one place only");
  }
  await prepareNodeIdentity({ ...at, now: NOW - 30 * 86_400_000 });
  t.equal(await new CertificateFiles(at.certDir, "server").read(), undefined, "not shown before its time");
  await prepareNodeIdentity({ ...at, server: "https://127.0.0.1:7443" });
  t.match(await loadKubeconfig(at.svcconfig), { server: "https://127.0.0.1:7443" });
});

t.test("prepareNodeIdentity() bootstraps a node again when its name or the CA changed", async (t) => {
  for (const [what, pair] of [
    ["another name", await signed(ca, "n2")],
    ["another authority", await signed(otherCa, "n1")],
  ] as const) {
    const at = options(join(t.testdir(), what));
    const files = new CertificateFiles(at.certDir, "client");
    await files.write(pair, NOW);
    t.equal(await prepareNodeIdentity(at), false, what);
    t.equal(await files.read(), undefined, what);
  }
});
