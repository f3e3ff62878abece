import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import t from "tap";
import { certificateSigningRequestKind as kind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { BOOTSTRAP_GROUP } from "../../apiserver/control-plane/node-bootstrap.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createCa } from "../../auth/pki/certificate-authority.ts";
import { createCertificateRequest, type RequestSubject } from "../../auth/pki/certificate-signing.ts";
import { writeKeyPair } from "../../auth/pki/key-pair.ts";
import type { UserInfo } from "../../auth/user.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { singleAuthority } from "../../controllers/signing-authorities.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";
import { fileDirectory } from "../../testing/std/file-directory.ts";

const NODE_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet";
const NODE_SERVING = "kubernetes.io/kubelet-serving";
const joiner = { name: "system:bootstrap:abcdef", uid: "", groups: [BOOTSTRAP_GROUP], extra: {} };
const node = (name: string): UserInfo => ({
  name: `system:node:${name}`,
  uid: "",
  groups: ["system:nodes", "system:authenticated"],
  extra: {},
});

const directory = fileDirectory(t);
const files = { certFile: join(directory, "ca.crt"), keyFile: join(directory, "ca.key") };
const ca = await createCa("test-ca", 10, Date.now());
await writeKeyPair(files, ca);

const { server } = await createApiServer(
  {
    ...defaultConfig,
    authorizationModes: ["Node", "RBAC"],
    embeddedControllers: ["csrapproving", "csrsigning", "csrcleaner"],
    signing: singleAuthority(files, 86_400_000),
    clusterCa: ca.cert,
  },
  { clock: systemClock, log: silentLogger },
  () => "192.0.2.1:6443",
);
t.teardown(() => server[Symbol.asyncDispose]());
const as = (user: UserInfo): Client =>
  createClient({ transport: server.handler, headers: { authorization: `Bearer ${server.loopbackToken(user)}` } });
const admin = as({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });

async function requestCertificate(
  user: UserInfo,
  signerName: string,
  subject: RequestSubject,
  usages: readonly string[],
) {
  const { request } = await createCertificateRequest(subject);
  const spec = { request: Buffer.from(request).toString("base64"), signerName, usages } as const;
  const created = await as(user).create(kind, { metadata: { generateName: "r-" }, spec } as CertificateSigningRequest);
  return created.metadata?.name ?? "";
}

const subjectOf = (name: string, more: Partial<RequestSubject> = {}): RequestSubject => ({
  commonName: `system:node:${name}`,
  organizations: ["system:nodes"],
  ...more,
});
const CLIENT = ["digital signature", "client auth"];
const SERVING = ["digital signature", "server auth"];

async function certificateOf(name: string): Promise<X509Certificate> {
  const done = await waitForObject(admin, kind, name, undefined, (request) => Boolean(request?.status?.certificate));
  return new X509Certificate(Buffer.from(done?.status?.certificate ?? "", "base64"));
}

t.test("embedded controllers sign client certificates for bootstrap users, and renew them for nodes", async (t) => {
  for (const user of [joiner, node("n1")]) {
    const certificate = await certificateOf(await requestCertificate(user, NODE_CLIENT, subjectOf("n1"), CLIENT));
    t.equal(certificate.subject, "O=system:nodes\nCN=system:node:n1");
    t.ok(certificate.verify(new X509Certificate(ca.cert).publicKey));
    t.same(certificate.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
    const left = certificate.validToDate.getTime() - Date.now();
    t.ok(left > 86_000_000 && left <= 86_400_000, "a day");
  }
});

t.test("embedded controllers sign serving certificates for addresses of the node's status", async (t) => {
  await admin.create(nodeKind, { metadata: { name: "n2" } });
  const wanted = subjectOf("n2", { dnsNames: ["n2.example"], ips: ["192.0.2.7", "2001:db8::7"] });
  const name = await requestCertificate(node("n2"), NODE_SERVING, wanted, SERVING);
  const created = await admin.get(nodeKind, { name: "n2" });
  const addresses = [
    { type: "Hostname", address: "N2.example" },
    { type: "InternalIP", address: "192.0.2.7" },
    { type: "InternalIP", address: "2001:db8:0::7" },
  ];
  await admin.updateStatus(nodeKind, { ...created, status: { ...created.status, addresses } });
  const certificate = await certificateOf(name);
  t.match(certificate.subjectAltName, /DNS:n2\.example/);
  t.equal(certificate.checkIP("192.0.2.7"), "192.0.2.7");
});

t.test("embedded controllers do not sign serving certificates for names of other nodes", async (t) => {
  const setAddresses = async (name: string, ...addresses: readonly string[]) => {
    const found = await admin.get(nodeKind, { name });
    const status = { ...found.status, addresses: addresses.map((address) => ({ type: "Hostname", address })) };
    await admin.updateStatus(nodeKind, { ...found, status });
  };
  await admin.create(nodeKind, { metadata: { name: "thief" } });
  await setAddresses("thief", "n2.example", "kubernetes.default.svc", "thief.example");
  const owner = await admin.get(nodeKind, { name: "n2" });
  const withReady = (status: "True" | "Unknown") => ({ ...owner.status, conditions: [{ type: "Ready", status }] });
  const known = await admin.updateStatus(nodeKind, { ...owner, status: withReady("True") });
  const names = (...dnsNames: readonly string[]) =>
    requestCertificate(node("thief"), NODE_SERVING, subjectOf("thief", { dnsNames }), SERVING);
  const refused = [await names("n2.example"), await names("kubernetes.default.svc", "thief.example")];
  await certificateOf(await names("thief.example"));
  for (const name of refused) t.notOk((await admin.get(kind, { name })).status?.conditions?.length, name);
  await admin.updateStatus(nodeKind, { ...known, status: withReady("Unknown") });
  t.match(
    (await certificateOf(refused[0]!)).subjectAltName,
    /DNS:n2\.example/,
    "names of a deleted node are available",
  );
});

t.test("embedded controllers do not approve requests beyond a node's certificates", async (t) => {
  const refused = [
    await requestCertificate(node("n2"), NODE_SERVING, subjectOf("n2", { ips: ["192.0.2.99"] }), SERVING),
    await requestCertificate(node("n3"), NODE_SERVING, subjectOf("n2", { ips: ["192.0.2.7"] }), SERVING),
    await requestCertificate(node("n3"), NODE_CLIENT, subjectOf("n2"), CLIENT),
    await requestCertificate(joiner, NODE_CLIENT, { commonName: "admin", organizations: ["system:masters"] }, CLIENT),
    await requestCertificate(joiner, NODE_CLIENT, subjectOf("n4", { dnsNames: ["n4"] }), CLIENT),
    await requestCertificate(joiner, NODE_CLIENT, subjectOf("n4"), [...CLIENT, "server auth"]),
  ];
  // Requests are handled in their order: the last one is decided last.
  await certificateOf(await requestCertificate(joiner, NODE_CLIENT, subjectOf("n5"), CLIENT));
  for (const name of refused) t.notOk((await admin.get(kind, { name })).status?.conditions?.length, name);
  await t.rejects(requestCertificate({ ...joiner, groups: [] }, NODE_CLIENT, subjectOf("n6"), CLIENT), {
    name: "StatusError",
    message: /cannot create/,
  });
});

t.test("embedded controllers mark approved requests as failed that the signer rejects", async (t) => {
  const name = await requestCertificate(joiner, NODE_CLIENT, subjectOf("n4", { dnsNames: ["n4"] }), CLIENT);
  const request = await admin.get(kind, { name });
  const conditions = [{ type: "Approved", status: "True", reason: "ByHand" }];
  await admin.updateSubresource(kind, { ...request, status: { conditions } }, "approval");
  const done = await waitForObject(admin, kind, name, undefined, (each) => (each?.status?.conditions ?? []).length > 1);
  const failed = done?.status?.conditions?.find(({ type }) => type === "Failed");
  t.match(failed, { reason: "SignerValidationFailure", message: "DNS subjectAltNames are not allowed" });
});

t.test("requests for a signer without a CA of its own are not signed", async (t) => {
  const clock = systemClock;
  const config = {
    ...defaultConfig,
    embeddedControllers: ["csrsigning"],
    signing: { nodeClients: files, lifetimeMs: 86_400_000 },
  };
  const { server } = await createApiServer(config, { clock, log: silentLogger }, () => "192.0.2.1:6443");
  t.teardown(() => server[Symbol.asyncDispose]());
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const client = createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });
  const { request } = await createCertificateRequest(subjectOf("n1"));
  const create = async (name: string, signerName: string): Promise<void> => {
    const spec = { request: Buffer.from(request).toString("base64"), signerName, usages: CLIENT };
    const created = await client.create(kind, { metadata: { name }, spec } as CertificateSigningRequest);
    const conditions = [{ type: "Approved", status: "True", reason: "Tested" }];
    await client.updateSubresource(kind, { ...created, status: { conditions } }, "approval");
  };
  await create("user", "kubernetes.io/kube-apiserver-client");
  await create("node", NODE_CLIENT);
  await waitForObject(client, kind, "node", undefined, (found) => Boolean(found?.status?.certificate));
  t.equal((await client.get(kind, { name: "user" })).status?.certificate, undefined);
});
