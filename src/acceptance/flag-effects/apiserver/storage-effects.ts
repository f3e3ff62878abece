/** Effects of the flags for storage, node connections and caching. */

import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { apiServerOptions } from "../../../apiserver/config/options.ts";
import { startApiServer } from "../../../apiserver/server.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import { openStore } from "../../../storage/open.ts";
import type { Store } from "../../../storage/store.ts";
import { makeCertificate } from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import {
  advanceUntil,
  baseSettings,
  countStoreReads,
  type Effect,
  externalAddresses,
  file,
  metricLines,
  type Name,
  PODS,
  parseFlags,
  pod,
  probeBlockedStore,
  recordWrites,
  startAndClose,
  startServer,
  TIMEOUT_MS,
  user,
  withAgent,
} from "./support.ts";

interface PlayedStore extends AsyncDisposable {
  /** The common name of the client certificate of each connection, or `anonymous`. */
  readonly connections: string[];
  /** Opens the store with the CA of the server and the flags. Resolves with the message of the failure. */
  connect(flags?: Partial<Record<Name, string>>): Promise<string>;
  readonly clientCertificate: Record<"kvstore-certfile" | "kvstore-keyfile", string>;
  /** Writes a file; resolves with its path. */
  write(name: string, text: string): string;
}

/** A server that accepts TLS connections as an etcd does, and closes them. */
async function playTlsStore(): Promise<PlayedStore> {
  const ca = await makeCertificate({ subject: [{ CN: ["store CA"] }], authority: {} });
  const serving = await makeCertificate({ subject: [{ CN: ["store"] }], issuer: ca, addresses: ["127.0.0.1"] });
  const client = await makeCertificate({ subject: [{ CN: ["apiserver"] }], issuer: ca });
  const connections: string[] = [];
  const { cert, key } = serving;
  const server = createServer(
    { cert, key, ca: ca.cert, requestCert: true, rejectUnauthorized: false, ALPNProtocols: ["h2"] },
    (socket) => {
      connections.push(String(socket.getPeerCertificate().subject?.CN ?? "anonymous"));
      socket.on("error", () => {});
      socket.destroy();
    },
  );
  server.on("tlsClientError", () => {});
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const dir = mkdtempSync(join(tmpdir(), "svc-store-"));
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const caFile = write("ca.crt", ca.cert);
  // The start gives up after some attempts, not after 20 seconds.
  const clock = { ...systemClock, monotonic: () => performance.now() * 100 };
  return {
    connections,
    async connect(flags = {}) {
      const settings = { "kvstore-servers": `https://127.0.0.1:${port}`, "kvstore-cafile": caFile, ...flags };
      const { flags: parsed, gates, version } = parseFlags(settings);
      const { storage } = apiServerOptions(parsed, gates, version);
      const opened = openStore({ ...storage, clock, log: silentLogger, compactionIntervalMs: 0 });
      return await opened.then(
        () => "opened",
        (error: unknown) => String(error),
      );
    },
    clientCertificate: {
      "kvstore-certfile": write("client.crt", client.cert),
      "kvstore-keyfile": write("client.key", client.key),
    },
    write,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
      rmSync(dir, { recursive: true });
    },
  };
}

export const storageEffects: Partial<Record<Name, Effect>> = {
  "storage-media-type": async (t) => {
    await using server = await startServer({ "storage-media-type": "application/json" });
    t.equal(String.fromCharCode(server.writes[0]!.value[0]!), "{");
    await using yaml = await startServer({ "storage-media-type": "application/yaml" });
    t.match(Buffer.from(yaml.writes[0]!.value).toString(), /^(?!\{)[\s\S]*kind: Namespace/);
    await using binary = await startServer();
    t.match(Buffer.from(binary.writes[0]!.value).toString("latin1"), /^(k8s|svc)\0/);
  },
  "storage-backend": async (t) => {
    await using server = await startServer({ "storage-backend": "kvstore3" });
    t.ok(server.writes.length > 0);
    t.throws(() => parseFlags({ "storage-backend": "etcd2" }), /--storage-backend="etcd2": must be kvstore3/);
  },
  "storage-initialization-timeout": async (t) => {
    const never = () => new Promise<never>(() => {});
    const clock = new FakeClock();
    const { flags, gates, version } = parseFlags({
      ...baseSettings,
      "storage-initialization-timeout": "3s",
      "secure-port": String(await freePort()),
    });
    const deps = { clock, log: silentLogger };
    const config = apiServerOptions(flags, gates, version);
    const store = recordWrites(createMemoryStore({ ...deps, ...config.storage }), [], { create: never });
    let failure: unknown;
    startApiServer(config, { ...deps, store }).catch((error: unknown) => {
      failure = error;
    });
    await advanceUntil(clock, "the start has failed", () => failure !== undefined, TIMEOUT_MS);
    t.match(failure, { message: "Cannot use the store memory://: it does not answer within 3000 ms" });
  },
  "kvstore-servers": async (t) => {
    const path = join(t.testdir(), "kept");
    {
      await using server = await startServer({ "kvstore-servers": `level://${path}` });
      await server.send(`POST ${PODS}`, pod("web"));
    }
    t.ok(existsSync(path));
    await using again = await startServer({ "kvstore-servers": `level://${path}` });
    t.equal((await again.send(`GET ${PODS}/web`)).status, 200);
    await t.rejects(startAndClose({ "kvstore-servers": "memory://,http://127.0.0.1:2379" }), /form a store together/);
    await using remote = await playTlsStore();
    await remote.connect();
    t.ok(remote.connections.length > 0, "the server of an https:// URL is connected");
  },
  "kvstore-servers-overrides": async (t) => {
    const path = join(t.testdir(), "events");
    const event = { metadata: { name: "e" }, involvedObject: { kind: "Pod", namespace: "default" }, reason: "R" };
    const events = "/api/v1/namespaces/default/events";
    const overridden = { "kvstore-servers-overrides": `/events#level://${path}` };
    {
      await using server = await startServer(overridden);
      t.equal((await server.send(`POST ${events}`, event)).status, 201);
      t.equal((await server.send(`POST ${PODS}`, pod("web"))).status, 201);
      t.ok(server.writes.some(({ key }) => key.startsWith("/registry/pods/")));
      t.notOk(server.writes.some(({ key }) => key.startsWith("/registry/events/")));
    }
    await using again = await startServer(overridden);
    t.equal((await again.send(`GET ${events}/e`)).status, 200, "it is in the other store");
    t.equal((await again.send("GET /apis/events.k8s.io/v1/namespaces/default/events/e")).status, 200);
    t.equal((await again.send(`GET ${PODS}/web`)).status, 404);
    const unknown = { "kvstore-servers-overrides": "apps/unicorns#memory://x" };
    await t.rejects(startAndClose(unknown), /no built-in resource apps\/unicorns/);
  },
  "kvstore-cafile": async (t) => {
    await using remote = await playTlsStore();
    t.match(await remote.connect(), /before secure TLS|other side closed|Connection dropped|No connection established/);
    t.ok(remote.connections.length > 0, "the CA verifies the server");
    await using unknown = await playTlsStore();
    const { cert } = await makeCertificate({ subject: [{ CN: ["other"] }], authority: {} });
    const other = unknown.write("other.crt", cert);
    t.match(await unknown.connect({ "kvstore-cafile": other }), /certificate|signature/);
    t.same(unknown.connections, [], "another CA does not");
  },
  "kvstore-certfile": async (t) => {
    await using remote = await playTlsStore();
    await remote.connect();
    t.same(new Set(remote.connections), new Set(["anonymous"]));
    await using certified = await playTlsStore();
    await certified.connect(certified.clientCertificate);
    t.same(new Set(certified.connections), new Set(["apiserver"]));
  },
  "kvstore-keyfile": async (t) => {
    await using remote = await playTlsStore();
    await remote.connect(remote.clientCertificate);
    t.same(new Set(remote.connections), new Set(["apiserver"]));
    await using mismatched = await playTlsStore();
    const { key } = await makeCertificate({ subject: [{ CN: ["other"] }] });
    const other = mismatched.write("other.key", key);
    t.match(await mismatched.connect({ ...mismatched.clientCertificate, "kvstore-keyfile": other }), /key/i);
    t.same(mismatched.connections, [], "a key of another certificate");
  },
  "kvstore-quota-bytes": async (t) => {
    const path = join(t.testdir(), "kept");
    const post = async (quota: string): Promise<readonly [number, string, number, readonly string[]]> => {
      await using server = await startServer({
        "kvstore-servers": `level://${path}`,
        "kvstore-quota-bytes": quota,
      });
      // Compressed values would leave space.
      const data = { text: randomBytes(300_000).toString("base64") };
      const answers = [];
      for (const i of [1, 2, 3, 4, 5, 6, 7, 8]) {
        const metadata = { generateName: `m${i}-` };
        answers.push(await server.send("POST /api/v1/namespaces/default/configmaps", { metadata, data }));
      }
      const { status, json } = answers.at(-1)!;
      const metrics = await metricLines(server, "etcd_server_quota_backend_bytes");
      return [status, json.message, (await server.send("GET /readyz")).status, metrics];
    };
    t.match(await post("1500000"), [500, /^etcdserver: mvcc: database space exceeded: /, 500, [/ 1\.5e\+06$/]]);
    t.match(await post("0"), [201, undefined, 200, [/ 2\.147483648e\+09$/]], "etcd's default");
    t.match(await post("-1"), [201, undefined, 200, [/ 0$/]], "no quota");
  },
  "kvstore-prefix": async (t) => {
    await using server = await startServer({ "kvstore-prefix": "/edge" });
    t.same(
      server.writes.filter(({ key }) => !key.startsWith("/edge/")).map(({ key }) => key),
      [],
    );
  },
  "kvstore-compaction-interval": async (t) => {
    const stale = async (interval: string, wanted: number): Promise<number> => {
      const path = join(t.testdir(), `history-${interval}`);
      await using server = await startServer({
        "kvstore-compaction-interval": interval,
        "kvstore-servers": `level://${path}`,
        // Caches keep a history of their own.
        "watch-cache": "false",
      });
      const { json } = await server.send(`GET ${PODS}`);
      for (let count = 0; count < 3; count++) await server.send(`POST ${PODS}`, pod(`p${count}`));
      await server.clock.advance(60 * 60_000);
      const query = `resourceVersion=${json.metadata.resourceVersion}&resourceVersionMatch=Exact&limit=1`;
      let status = 0;
      await server.until("the compaction, or its absence", async () => {
        ({ status } = await server.send(`GET ${PODS}?${query}`));
        return status === wanted;
      });
      return status;
    };
    t.equal(await stale("0", 200), 200, "the revision exists");
    t.equal(await stale("1m", 410), 410, "the revision is compacted");
  },
  "kvstore-healthcheck-timeout": async (t) => {
    t.same(await probeBlockedStore({ "kvstore-healthcheck-timeout": "3s" }, "/livez"), { early: false, status: 500 });
  },
  "kvstore-readycheck-timeout": async (t) => {
    t.same(await probeBlockedStore({ "kvstore-readycheck-timeout": "3s" }, "/readyz"), { early: false, status: 500 });
  },
  "enable-garbage-collector": async (t) => {
    const after = async (setting: string): Promise<number> => {
      await using server = await startServer({ "enable-garbage-collector": setting });
      await server.send("POST /api/v1/namespaces/default/configmaps", { metadata: { name: "m" } });
      await server.send("DELETE /api/v1/namespaces/default/configmaps/m?propagationPolicy=Orphan");
      return (await server.send("GET /api/v1/namespaces/default/configmaps/m")).status;
    };
    t.equal(await after("true"), 200, "foreground deletion waits for the garbage collector");
    t.equal(await after("false"), 404, "deleted at once");
  },
  "delete-collection-workers": async (t) => {
    const atOnce = async (workers: string): Promise<number> => {
      const gate = Promise.withResolvers<never>();
      const store: { delete?: Store["delete"] } = {};
      await using server = await startServer({ "delete-collection-workers": workers }, store);
      const path = "/api/v1/namespaces/default/configmaps";
      for (const name of ["a", "b", "c", "d", "e"]) await server.send(`POST ${path}`, { metadata: { name } });
      let deletions = 0;
      store.delete = () => {
        deletions++;
        return gate.promise;
      };
      const response = server.send(`DELETE ${path}`);
      await server.until("deletions to start", () => deletions > 0);
      gate.reject(new Error("the store does not delete"));
      t.equal((await response).status, 500, "the first failure ends the request");
      return deletions;
    };
    t.equal(await atOnce("1"), 1);
    t.equal(await atOnce("3"), 3);
  },
  "event-ttl": async (t) => {
    await using server = await startServer({ "event-ttl": "90s" });
    const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
    await server.send("POST /api/v1/namespaces/default/events", {
      metadata: { name: "e" },
      involvedObject,
      reason: "R",
    });
    t.equal(server.writes.find(({ key }) => key.includes("/events/"))?.options?.ttlSeconds, 90);
  },
  "lease-reuse-duration-seconds": async (t) => {
    const after = async (reuse: string, ...waits: readonly number[]): Promise<number[]> => {
      await using server = await startServer({ "event-ttl": "1h", "lease-reuse-duration-seconds": reuse });
      const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
      const path = "/api/v1/namespaces/default/events";
      await server.send(`POST ${path}`, { metadata: { name: "e" }, involvedObject, reason: "R" });
      const found: number[] = [];
      for (const wait of waits) {
        await server.clock.advance(wait * 1000);
        found.push((await server.send(`GET ${path}/e`)).status);
      }
      return found;
    };
    t.same(await after("1", 3600, 3), [200, 404], "an event expires with the lease that it shares");
    t.same(await after("100", 3695, 8), [200, 404]);
  },
  "watch-cache": async (t) => {
    t.ok((await countStoreReads({ "watch-cache": "true" }, PODS)) === 0, "the cache serves reads");
    t.ok((await countStoreReads({ "watch-cache": "false" }, PODS)) >= 3, "the store serves reads");
  },
  "watch-cache-sizes": async (t) => {
    const deployments = "/apis/apps/v1/namespaces/default/deployments";
    const sizes = { "watch-cache-sizes": "pods#0,deployments.apps#100,replicasets.apps#0" };
    t.ok((await countStoreReads(sizes, PODS)) >= 3);
    t.equal(await countStoreReads(sizes, deployments), 0, "a size other than 0 has no effect");
    t.ok((await countStoreReads(sizes, "/apis/apps/v1/namespaces/default/replicasets")) >= 3);
    t.equal(await countStoreReads(sizes, "/api/v1/namespaces/default/podtemplates"), 0);
  },
  "svclet-client-certificate": async (t) => {
    const own = { "svclet-client-certificate": file("user.crt"), "svclet-client-key": file("user.key") };
    await withAgent({ ...externalAddresses, ...own }, async (server, seen) => {
      t.match(await server.send(`GET ${PODS}/web/log`), { status: 200, json: "line\n" });
      t.same(seen[0]?.peer.certificates[0], Buffer.from(user.der));
    });
  },
  "svclet-client-key": async (t) => {
    const own = { "svclet-client-certificate": file("user.crt"), "svclet-client-key": file("server.key") };
    await t.rejects(
      withAgent({ ...externalAddresses, ...own }, async () => {}),
      { message: /its key is not the one in/ },
    );
  },
  "svclet-certificate-authority": async (t) => {
    const untrusted = await makeCertificate({ subject: [{ CN: ["other"] }], authority: {} });
    const directory = t.testdir({ "other.crt": untrusted.cert });
    const trusting = { ...externalAddresses, "svclet-certificate-authority": join(directory, "other.crt") };
    await withAgent(trusting, async (server) => {
      t.equal((await server.send(`GET ${PODS}/web/log`)).status, 500, "signed by another CA");
    });
  },
  "svclet-preferred-address-types": async (t) => {
    await withAgent({ "svclet-preferred-address-types": "ExternalIP,InternalIP" }, async (server) => {
      t.equal((await server.send(`GET ${PODS}/web/log`)).status, 200);
    });
    await withAgent({ "svclet-preferred-address-types": "InternalIP,ExternalIP" }, async (server) => {
      t.equal((await server.send(`GET ${PODS}/web/log`)).status, 500, "no agent at the other address");
    });
  },
  "svclet-timeout": async (t) => {
    const silent = () => new Promise<never>(() => {});
    const settings = { ...externalAddresses, "svclet-timeout": "20ms" };
    await withAgent(
      settings,
      async (server) => {
        t.match(await server.send(`GET ${PODS}/web/log`), {
          status: 500,
          json: { message: /no answer within 20 ms/ },
        });
      },
      silent,
    );
  },
  "kvstore-count-metric-poll-period": async (t) => {
    await using server = await startServer({ "kvstore-count-metric-poll-period": "5s" });
    const namespaces = async () =>
      (await metricLines(server, "apiserver_storage_objects")).find((line) => /namespaces/.test(line));
    await server.until("the first count", async () => (await namespaces()) !== undefined);
    const before = Number((await namespaces())?.split(" ")[1]);
    t.ok(before > 0);
    await server.send("POST /api/v1/namespaces", { metadata: { name: "one-more" } });
    const after = async () => Number((await namespaces())?.split(" ")[1]);
    await server.until("the second count", async () => (await after()) === before + 1);
    await using without = await startServer({ "kvstore-count-metric-poll-period": "0s" });
    await without.clock.advance(120_000);
    t.same(await metricLines(without, "apiserver_storage_objects"), []);
  },
  "kvstore-db-metric-poll-interval": async (t) => {
    const stored = { "kvstore-servers": `level://${join(t.testdir(), "db")}` };
    await using server = await startServer({ ...stored, "kvstore-db-metric-poll-interval": "7s" });
    const size = () => metricLines(server, "apiserver_storage_size_bytes");
    await server.until("the size metric", async () => (await size()).length > 0);
    t.match(await size(), [/^apiserver_storage_size_bytes\{storage_cluster_id="storage-cluster-0"\} \d/]);
    await server.running.close();
    await using without = await startServer({ ...stored, "kvstore-db-metric-poll-interval": "0s" });
    t.same(await metricLines(without, "apiserver_storage_size_bytes"), []);
  },
  "runtime-config": async (t) => {
    await using server = await startServer({
      "runtime-config": "batch/v1=false,api/beta=true,apps/v1/deployments=false",
    });
    const status = async (path: string) => (await server.send(`GET ${path}`)).status;
    t.equal(await status("/apis/batch/v1/jobs"), 404);
    t.equal(await status("/apis/batch"), 404);
    t.equal(await status("/apis/apps/v1/deployments"), 404);
    t.equal(await status("/apis/apps/v1/statefulsets"), 200);
    for (const group of ["networking.svc.io", "networking.k8s.io"]) {
      t.match((await server.send(`GET /apis/${group}/v1beta1/servicecidrs`)).json, { apiVersion: `${group}/v1beta1` });
    }
    await t.rejects(startAndClose({ "runtime-config": "bakery.svc.io/v1=true" }), /no API group "bakery.svc.io"/);
  },
};
