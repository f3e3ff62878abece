/** `svc apiserver` with two threads and what both use: encryption by a plugin, certificates, controllers, etcd. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import t, { type Test } from "tap";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";
import { findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { FakeKms } from "../../testing/storage/fake-kms.ts";

t.setTimeout(120_000);

/** So many that both threads have some. */
const CONNECTIONS = 16;
const SECRETS = "/api/v1/namespaces/default/secrets";

async function writeCertificate(home: string): Promise<void> {
  const { server } = await makeServerCertificate();
  for (const [name, text] of Object.entries({ "serving.crt": server.cert, "serving.key": server.key })) {
    writeFileSync(join(home, `${name}.new`), text, { mode: 0o600 });
    renameSync(join(home, `${name}.new`), join(home, name));
  }
}

/** The certificates that new connections receive. */
async function servedCertificates(port: number): Promise<ReadonlySet<string>> {
  const read = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      });
      socket.on("error", reject);
    });
  return new Set(await Promise.all(Array.from({ length: CONNECTIONS }, read)));
}

async function exercise(t: Test, store: (home: string) => string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "svc-threads-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  await using kms = await FakeKms.start();
  const encryption = {
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "EncryptionConfiguration",
    resources: [
      { resources: ["secrets"], providers: [{ kms: { apiVersion: "v2", name: "k", endpoint: kms.endpoint } }] },
    ],
  };
  writeFileSync(join(home, "encryption.json"), JSON.stringify(encryption));
  await writeCertificate(home);
  await using server: ServerProcess = await startServerProcess({
    home,
    store: store(home),
    flags: [
      "--workers=2",
      `--encryption-provider-config=${join(home, "encryption.json")}`,
      `--tls-cert-file=${join(home, "serving.crt")}`,
      `--tls-private-key-file=${join(home, "serving.key")}`,
      "--embedded-controllers=namespace",
    ],
  });
  const names = Array.from({ length: 2 * CONNECTIONS }, (_, index) => `s${index}`);
  const created = names.map((name) =>
    server.send("POST", SECRETS, { metadata: { name }, stringData: { value: name } }),
  );
  const answers = await Promise.all(created);
  t.same(
    new Set(answers.map(({ status }) => status)),
    new Set([201]),
    JSON.stringify(answers.find(({ status }) => status !== 201)),
  );
  // Each of them through some connections of both threads.
  for (const name of names) {
    const reads = await Promise.all(names.map(() => server.send("GET", `${SECRETS}/${name}`)));
    const value = Buffer.from(name).toString("base64");
    t.same(new Set(reads.map(({ json }) => json.data.value)), new Set([value]));
  }
  t.ok(
    kms.calls.some((call) => call.endsWith("Encrypt")),
    "secrets are encrypted",
  );

  const before = await servedCertificates(server.port);
  t.equal(before.size, 1);
  await writeCertificate(home);
  await until("both threads serve the new certificate", async () => {
    const served = await servedCertificates(server.port);
    return served.size === 1 && ![...served].some((each) => before.has(each));
  });

  await server.send("POST", "/api/v1/namespaces", { metadata: { name: "gone" } });
  await server.send("POST", "/api/v1/namespaces/gone/secrets", { metadata: { name: "s" } });
  await server.send("DELETE", "/api/v1/namespaces/gone");
  await until("the controller of the main thread deletes the namespace", async () => {
    const reads = await Promise.all(names.map(() => server.send("GET", "/api/v1/namespaces/gone")));
    return reads.every(({ status }) => status === 404);
  });
  server.child.kill("SIGTERM");
  t.equal(await server.ended, 0);
}

t.test("two threads over the embedded store", async (t) => await exercise(t, (home) => join(home, "store")));

t.test("two threads over etcd", { skip: findEtcdProblem() ?? false }, async (t) => {
  await using etcd = await startEtcd();
  await exercise(t, () => etcd.urls.join(","));
});
