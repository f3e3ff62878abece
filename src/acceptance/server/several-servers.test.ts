/** Several API servers on one etcd. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { V1ConfigMap } from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { type Answer, type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
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
