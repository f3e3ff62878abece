/**
 * Several API servers on one etcd, behind a load balancer, through a rolling restart; with Kubernetes' JavaScript
 * client.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { type Answer, type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { type EtcdCluster, findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";

t.setTimeout(120_000);

const problem = findEtcdProblem();
const NAMESPACE = "/api/v1/namespaces/default";
const MAPS = `${NAMESPACE}/configmaps`;

function homeOf(t: Test): string {
  const home = mkdtempSync(join(tmpdir(), "svc-several-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function startServers(
  t: Test,
  etcd: EtcdCluster,
  count: number,
  flags: readonly string[] = [],
): Promise<ServerProcess[]> {
  const start = async (): Promise<ServerProcess> => {
    const server = await startServerProcess({ home: homeOf(t), store: etcd.urls.join(","), flags });
    t.teardown(() => server[Symbol.asyncDispose]());
    return server;
  };
  return await Promise.all(Array.from({ length: count }, start));
}

/** Connects clients to the servers in turn; to the next one when a server does not accept the connection. */
class LoadBalancer implements AsyncDisposable {
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #ports: readonly number[] = [];
  #next = 0;
  port = 0;

  constructor() {
    this.#server = createServer((client) => {
      this.#clients.add(client);
      client.on("error", () => {});
      client.on("close", () => this.#clients.delete(client));
      const attempt = (left: number): void => {
        const port = this.#ports[this.#next++ % this.#ports.length];
        if (left === 0 || port === undefined) return void client.destroy();
        const server = connect(port, "127.0.0.1", () => {
          client.pipe(server);
          server.pipe(client);
          client.on("close", () => server.destroy());
          server.on("close", () => client.destroy());
        });
        server.on("error", () => (server.bytesRead === 0 && server.pending ? attempt(left - 1) : client.destroy()));
      };
      attempt(this.#ports.length);
    });
  }

  async listen(): Promise<void> {
    this.port = await freePort();
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
  }

  use(servers: readonly ServerProcess[]): void {
    this.#ports = servers.map(({ port }) => port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
  }
}

t.test("a write through one server is in the next read through another", { skip: problem ?? false }, async (t) => {
  await using etcd = await startEtcd();
  const [one, two] = (await startServers(t, etcd, 2)) as [ServerProcess, ServerProcess];
  for (let i = 0; i < 20; i++) {
    const created = await one.send("POST", MAPS, { metadata: { name: `m${i}` }, data: { n: "0" } });
    t.equal(created.status, 201);
    const read = await two.send("GET", `${MAPS}/m${i}`);
    t.equal(read.json.metadata?.resourceVersion, created.json.metadata.resourceVersion);
    await two.send("PUT", `${MAPS}/m${i}`, { ...read.json, data: { n: "1" } });
    const list = await one.send("GET", MAPS);
    t.equal(list.json.items.find((map: V1ConfigMap) => map.metadata?.name === `m${i}`).data.n, "1");
  }
  await t.test("service addresses and node ports are unique across servers", async (t) => {
    const create = (i: number): Promise<Answer> =>
      [one, two][i % 2]!.send("POST", `${NAMESPACE}/services`, {
        metadata: { name: `s${i}` },
        spec: { type: "NodePort", ports: [{ port: 80 }] },
      });
    const services = await Promise.all(Array.from({ length: 60 }, (_, i) => create(i)));
    t.same([...new Set(services.map(({ status }) => status))], [201]);
    t.equal(new Set(services.map(({ json }) => json.spec.clusterIP)).size, 60);
    t.equal(new Set(services.map(({ json }) => json.spec.ports[0].nodePort)).size, 60);
  });
});

t.test("one of several servers runs the embedded controllers", { skip: problem ?? false }, async (t) => {
  await using etcd = await startEtcd();
  const flags = ["--embedded-controllers=deployment,replicaset", "--disable-admission-plugins=ServiceAccount"];
  const servers = await startServers(t, etcd, 3, [...flags, "-v=1"]);
  const leaders = (): ServerProcess[] =>
    servers.filter(({ errors, child }) => child.exitCode === null && /Successfully acquired lease/.test(errors()));
  await until("there is a leader", async () => leaders().length > 0);
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "img:1" }] } };
  const spec = { replicas: 3, selector: { matchLabels: labels }, template };
  const deployments = "/apis/apps/v1/namespaces/default/deployments";
  t.equal((await servers[0]!.send("POST", deployments, { metadata: { name: "web" }, spec })).status, 201);
  const pods = async (server: ServerProcess): Promise<number> =>
    (await server.send("GET", `${NAMESPACE}/pods`)).json.items.length;
  for (const server of servers) await until("the pods exist", async () => (await pods(server)) === 3);
  const events = (await servers[0]!.send("GET", `${NAMESPACE}/events`)).json.items;
  const scaled = events.filter(({ reason }: { readonly reason: string }) => reason === "ScalingReplicaSet");
  t.equal(scaled.length, 1, "one controller acts");
  t.equal(leaders().length, 1);
  const [leader] = leaders() as [ServerProcess];
  leader.child.kill("SIGKILL");
  await leader.ended;
  const others = servers.filter((server) => server !== leader);
  const path = `${deployments}/web`;
  const contentType = "application/merge-patch+json";
  t.equal((await others[0]!.send("PATCH", path, { spec: { replicas: 5 } }, { contentType })).status, 200);
  await until("another server scales", async () => (await pods(others[1]!)) === 5);
});

t.test("clients do not notice a rolling restart", { skip: problem ?? false }, async (t) => {
  await using etcd = await startEtcd();
  let servers = await startServers(t, etcd, 2);
  await using balancer = new LoadBalancer();
  await balancer.listen();
  balancer.use(servers);
  const config = new KubeConfig();
  const cluster = { name: "c", server: `https://127.0.0.1:${balancer.port}`, skipTLSVerify: true };
  config.loadFromClusterAndUser(cluster, { name: "u", token: "secret" });
  const api = config.makeApiClient(CoreV1Api);
  const namespace = "default";
  const informer = makeInformer(config, MAPS, () => api.listNamespacedConfigMap({ namespace }));
  let stopped = false;
  const seen = new Map<string, number[]>();
  const record = ({ metadata, data }: V1ConfigMap): void => {
    const name = metadata?.name ?? "";
    const values = seen.get(name) ?? [];
    const value = Number(data?.n);
    if (values.at(-1) !== value) values.push(value);
    seen.set(name, values);
  };
  informer.on("add", record);
  informer.on("update", record);
  informer.on("error", () => {
    if (!stopped) void sleep(50).then(() => informer.start());
  });
  await informer.start();

  const failures: string[] = [];
  /** As Kubernetes' clients: retries a request whose connection ended, or that the server sent to another one. */
  const retry = async <T>(what: string, call: () => Promise<T>): Promise<T | undefined> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        const { code, body } = error as { code?: unknown; body?: unknown };
        const isRetriable = typeof code !== "number" || code === 429 || code === 503 || code === 504;
        if (code === 409 && attempt > 1) return undefined;
        if (!isRetriable || attempt === 20) {
          failures.push(`${what}: ${String(code)} ${String(body)}`);
          return undefined;
        }
        await sleep(50);
      }
    }
  };
  let writes = 0;
  const writer = async (name: string): Promise<number> => {
    await retry(`create ${name}`, () =>
      api.createNamespacedConfigMap({ namespace, body: { metadata: { name }, data: { n: "0" } } }),
    );
    for (let n = 1; ; n++) {
      if (stopped) return n - 1;
      const body = { metadata: { name }, data: { n: String(n) } };
      await retry(`update ${name}`, () => api.replaceNamespacedConfigMap({ namespace, name, body }));
      writes++;
      await sleep(10);
    }
  };
  const names = ["a", "b", "c", "d"];
  const writing = Promise.all(names.map(writer));
  for (let i = 0; i < 2; i++) {
    const old = servers[i]!;
    await sleep(500);
    const [replacement] = (await startServers(t, etcd, 1)) as [ServerProcess];
    servers = servers.with(i, replacement);
    balancer.use(servers);
    old.child.kill("SIGTERM");
    t.equal(await old.ended, 0, "the server ends by itself");
  }
  await sleep(500);
  stopped = true;
  const last = await writing;
  t.same(failures, []);
  t.comment(`${writes} writes`);
  await until("the informer has the last values", async () =>
    names.every((name, i) => seen.get(name)?.at(-1) === last[i]),
  );
  await informer.stop();
  for (const name of names) {
    const values = seen.get(name)!;
    t.same(
      values,
      [...values].sort((a, b) => a - b),
      `${name} never goes back`,
    );
  }
});
