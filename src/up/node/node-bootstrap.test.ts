/** Bootstrap of a node that has only a token, with a server and an agent. */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import { openConnection } from "../../agent/api-server/bootstrap.ts";
import { joinCluster, publicKeyHash } from "../../agent/api-server/join.ts";
import { CertificateFiles } from "../../agent/certificates/certificate-files.ts";
import { rotateServingCertificate, ServingNames } from "../../agent/certificates/serving-certificate.ts";
import { defaultAgentConfig } from "../../agent/options.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { networkPolicyKind } from "../../api/networking/network-policy/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { BOOTSTRAP_GROUP } from "../../apiserver/control-plane/node-bootstrap.ts";
import { startApiServer } from "../../apiserver/server.ts";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { type KeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import { createClient } from "../../client/api-client.ts";
import { loadKubeconfig, writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import { singleAuthority } from "../../controllers/signing-authorities.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { fileDirectory } from "../../testing/std/file-directory.ts";
import { createJoinCommand, createToken } from "../commands/token.ts";

const directory = fileDirectory(t);
const file = (name: string): string => join(directory, name);
const pair = (name: string) => ({ certFile: file(`${name}.crt`), keyFile: file(`${name}.key`) });
const ca = await createCa("ca", 10, Date.now());
await writeKeyPair(pair("ca"), ca);
const names = { alternativeNames: ["127.0.0.1"], usages: ["server"] } as const;
const serving = await issueCertificate(ca, { commonName: "api", ...names, days: 5 }, Date.now());
await writeKeyPair(pair("api"), serving);
writeFileSync(file("tokens"), `join-me,system:bootstrap:abcdef,,"${BOOTSTRAP_GROUP}"\n`);

const api = await startApiServer(
  {
    ...defaultConfig,
    serving: { ...defaultConfig.serving, certificate: pair("api") },
    authentication: {
      ...defaultConfig.authentication,
      clientCaFile: pair("ca").certFile,
      tokenFile: file("tokens"),
      bootstrapTokens: true,
    },
    authorizationModes: ["Node", "RBAC"],
    embeddedControllers: ["csrapproving", "csrsigning"],
    clusterCa: ca.cert,
    agentFlags: ["--serve-dns", "--cluster-dns=10.0.0.10", "--network-policy"],
    signing: singleAuthority(pair("ca"), 86_400_000),
  },
  { clock: systemClock, log: silentLogger },
);
t.teardown(() => api.close());
const server = `https://127.0.0.1:${api.address.port}`;

t.test("openConnection() bootstraps a node with a token, and keeps and uses its certificate", async (t) => {
  await writeKubeconfig(file("bootstrap"), { server, ca: ca.cert, cluster: "c", user: "u", token: "join-me" });
  const config = {
    ...defaultAgentConfig("n1"),
    certDir: file("pki"),
    svcconfig: file("svcconfig"),
    certificates: { bootstrapSvcconfig: file("bootstrap"), rotateClient: true, rotateServing: true },
  };
  const stop = new AbortController();
  const open = () => openConnection(config, systemClock, silentLogger, stop.signal);
  {
    await using connection = await open();
    const client = createClient({ transport: connection.transport });
    const node = await client.create(nodeKind, { metadata: { name: "n1" } });
    // For rules about pods of other nodes.
    t.same((await client.list(networkPolicyKind)).items, []);
    t.same((await client.list(podKind)).items, []);
    t.not((await client.list(namespaceKind)).items.length, 0);
    const addresses = [
      { type: "InternalIP", address: "127.0.0.1" },
      { type: "Hostname", address: "n1" },
    ];
    const updated = await client.updateStatus(nodeKind, { ...node, status: { ...node.status, addresses } });
    t.equal(statSync(file("svcconfig")).mode & 0o777, 0o600);
    t.match(readFileSync(file("svcconfig"), "utf8"), /client-certificate: .*svclet-client-current\.pem/);
    const names = new ServingNames();
    names.update(updated);
    let got = Promise.withResolvers<KeyPair>();
    const use = (pair: KeyPair): void => got.resolve(pair);
    const options = { config, client, names, clock: systemClock, log: silentLogger, use };
    await using _keeping = rotateServingCertificate(options, stop.signal);
    const first = new X509Certificate((await got.promise).cert);
    t.match([first.checkIP("127.0.0.1"), first.checkHost("n1")], ["127.0.0.1", "n1"]);
    got = Promise.withResolvers();
    const moved = [{ type: "InternalIP", address: "192.0.2.7" }, ...addresses];
    names.update(await client.updateStatus(nodeKind, { ...updated, status: { ...updated.status, addresses: moved } }));
    t.ok(new X509Certificate((await got.promise).cert).checkIP("192.0.2.7"), "and another when these change");
  }
  const { cert } = await loadKubeconfig(file("svcconfig"));
  writeFileSync(file("bootstrap"), "of no use any more");
  await using again = await open();
  t.match(await createClient({ transport: again.transport }).get(nodeKind, { name: "n1" }), { kind: "Node" });
  t.equal((await loadKubeconfig(file("svcconfig"))).cert, cert, "the second start requests nothing");
});

t.test(
  "openConnection() bootstraps a running node again when the server no longer accepts its certificate",
  async (t) => {
    const other = await createCa("other", 10, Date.now());
    const subject = { commonName: "system:node:n7", organizations: ["system:nodes"], usages: ["client"] } as const;
    const files = new CertificateFiles(file("pki7"), "client");
    await files.write(await issueCertificate(other, { ...subject, days: 5 }, Date.now()), Date.now());
    const access = { server, ca: ca.cert, cluster: "c", user: "u" };
    await writeKubeconfig(file("svcconfig7"), { ...access, certFile: files.current, keyFile: files.current });
    await writeKubeconfig(file("bootstrap7"), { ...access, token: "join-me" });
    const config = {
      ...defaultAgentConfig("n7"),
      certDir: file("pki7"),
      svcconfig: file("svcconfig7"),
      certificates: { bootstrapSvcconfig: file("bootstrap7"), rotateClient: true, rotateServing: true },
    };
    const stop = new AbortController();
    await using connection = await openConnection(config, systemClock, silentLogger, stop.signal);
    const client = createClient({ transport: connection.transport });
    const create = async () =>
      await client.create(nodeKind, { metadata: { name: "n7" } }).catch(({ status }) => status);
    t.match(await create(), { code: 401 });
    let made = await create();
    for (let tries = 0; tries < 500 && made.code === 401; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      made = await create();
    }
    t.match(made, { kind: "Node", metadata: { name: "n7" } });
  },
);

t.test("openConnection() reports problems of a bootstrap file", async (t) => {
  writeFileSync(file("bad"), "kind: Nonsense");
  const config = {
    ...defaultAgentConfig("n2"),
    certDir: file("pki2"),
    svcconfig: file("svcconfig2"),
    certificates: { bootstrapSvcconfig: file("bad"), rotateClient: false, rotateServing: false },
  };
  const never = new AbortController().signal;
  await t.rejects(openConnection(config, systemClock, silentLogger, never), {
    message: /bad:1: kind: expected Config/,
  });
});

t.test("createJoinCommand() and joinCluster() let two machines join with one command each", async (t) => {
  const token = api.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  await using transport = networkTransport({ server, ca: ca.cert, token });
  const admin = createClient({ transport });
  const invited = { server, token: await createToken(admin, Date.now() + 60_000), caHash: publicKeyHash(ca.cert) };
  const stop = new AbortController();
  for (const name of ["m1", "m2"]) {
    const base = { ...defaultAgentConfig(name), rootDir: file(name), certDir: file(`${name}-pki`) };
    const config = await joinCluster(base, invited, stop.signal);
    t.match(config, { server: { anonymousAuth: false }, certificates: { rotateClient: true, rotateServing: true } });
    const files = { tlsCertFile: "/tls.crt", tlsKeyFile: "/tls.key" };
    const withFiles = await joinCluster({ ...base, server: { ...base.server, ...files } }, invited, stop.signal);
    t.equal(withFiles.certificates.rotateServing, false, "the files of the flags are served");
    const { svcconfig = "" } = config;
    await using connection = await openConnection({ ...config, svcconfig }, systemClock, silentLogger, stop.signal);
    await createClient({ transport: connection.transport }).create(nodeKind, { metadata: { name } });
    t.ok(
      await joinCluster(base, { ...invited, server: "https://127.0.0.1:1" }, stop.signal),
      "the second start sends no request",
    );
  }
  await writeKubeconfig(file("admin"), { server, ca: ca.cert, cluster: "c", user: "admin", token });
  const flags = { svcconfig: file("admin"), server: "https://far.example:6443", ttl: 3_600_000, help: false };
  const command = await createJoinCommand(flags);
  const hash = publicKeyHash(ca.cert);
  t.match(
    command,
    new RegExp(
      `^svc agent --join https://far\\.example:6443 --token \\w{6}\\.\\w{16} --ca-hash ${hash} --serve-dns --cluster-dns=10\\.0\\.0\\.10 --network-policy\n$`,
    ),
  );
  const [, id] = /--token (\w+)\./.exec(command) ?? [];
  const secret = await admin.get(secretKind, { namespace: "svc-system", name: `bootstrap-token-${id}` });
  const until = Date.parse(Buffer.from(secret.data?.expiration ?? "", "base64").toString());
  t.ok(Math.abs(until - Date.now() - 3_600_000) < 60_000, "it runs out after --ttl");
  t.match(await createJoinCommand({ ...flags, server: "" }), `--join ${server} `, "the URL that the cluster publishes");
  await t.rejects(createJoinCommand({ ...flags, svcconfig: file("none") }), { message: /Cannot load .*none/ });
  t.same(
    (await admin.list(nodeKind)).items.map(({ metadata }) => metadata?.name),
    ["m1", "m2", "n1", "n7"],
  );
  const other = { ...invited, caHash: `sha256:${"0".repeat(64)}` };
  const base = { ...defaultAgentConfig("m3"), rootDir: file("m3") };
  await t.rejects(joinCluster(base, other, stop.signal), { message: /none of its CAs has the hash/ });
  for (const unknown of [
    "abcdef.0123456789abcdef",
    invited.token.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
  ]) {
    await t.rejects(joinCluster(base, { ...invited, token: unknown }, stop.signal), {
      message: /^Cannot join .*: it does not accept the token, .*; create another with svc token create$/,
    });
  }
  const nowhere = { ...invited, server: "https://127.0.0.1:1" };
  await t.rejects(joinCluster(base, nowhere, stop.signal), {
    message: /^Cannot join https:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/,
  });
});

t.test("startAgent() stops while it waits for a certificate", async (t) => {
  await writeKubeconfig(file("unknown"), { server, ca: ca.cert, cluster: "c", user: "u", token: "unknown-token" });
  const config = defaultAgentConfig("n9");
  const logged = Promise.withResolvers<string>();
  const log = { ...silentLogger, child: () => log, error: (text: string) => logged.resolve(text) };
  const stop = new AbortController();
  const starting = startAgent(
    {
      ...config,
      rootDir: file("n9"),
      podLogsDir: file("n9-logs"),
      certDir: file("n9-pki"),
      svcconfig: file("n9-svcconfig"),
      certificates: { bootstrapSvcconfig: file("unknown"), rotateClient: true, rotateServing: true },
      runtime: { ...config.runtime, failSwapOn: false, failCgroupV1: false },
    },
    { clock: systemClock, log: log as never, stopping: stop.signal },
  );
  t.match(await logged.promise, "Cannot request a client certificate with the bootstrap file; trying again");
  stop.abort(new Error("SIGTERM"));
  await t.rejects(starting, { message: "SIGTERM" });
});
