/** A store behind an egress proxy. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Connector } from "../../client/transport/connector.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import {
  CLIENT_AUTH,
  makeCertificate,
  makeServerCertificate,
  SERVER_AUTH,
} from "../../testing/http/test-certificates.ts";
import { findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { openEtcdStore } from "./kvstore3.ts";

const skip = findEtcdProblem() ?? false;
const options = { clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };

/** Connects to the server whatever the host and the port are. */
function connectorTo(server: string): { readonly targets: Set<string>; readonly connector: Connector } {
  const targets = new Set<string>();
  const port = Number(new URL(server).port);
  const connector: Connector = async (host, named) => {
    targets.add(`${host}:${named}`);
    return connect({ host: "127.0.0.1", port });
  };
  return { targets, connector };
}

t.test("the servers of a store are reached through a connector, also with TLS", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-etcd-tls-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { ca } = await makeServerCertificate();
  const server = await makeCertificate({
    subject: [{ CN: ["etcd"] }],
    issuer: ca,
    usages: [SERVER_AUTH, CLIENT_AUTH],
    names: ["etcd.example.com"],
    addresses: ["127.0.0.1", "192.0.2.9"],
  });
  const files = { caFile: "ca.crt", certFile: "tls.crt", keyFile: "tls.key" };
  const tls = {
    caFile: join(folder, files.caFile),
    certFile: join(folder, files.certFile),
    keyFile: join(folder, files.keyFile),
  };
  writeFileSync(tls.caFile, ca.cert);
  writeFileSync(tls.certFile, server.cert);
  writeFileSync(tls.keyFile, server.key);
  for (const [given, urls] of [
    [undefined, ["http://etcd.example.com:2379"]],
    [tls, ["https://etcd.example.com:2379", "https://192.0.2.9:2379"]],
  ] as const) {
    await using etcd = await startEtcd(1, given);
    for (const url of urls) {
      const { targets, connector } = connectorTo(etcd.urls[0] ?? "");
      await using store = await openEtcdStore({ ...options, urls: [url], tls: given, connector });
      const key = `/registry/${new URL(url).hostname}`;
      await store.create(key, Buffer.from("value"));
      t.equal(Buffer.from((await store.get(key))?.value ?? []).toString(), "value", url);
      t.same([...targets], [new URL(url).host]);
    }
  }
});
