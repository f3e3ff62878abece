/** `svc scheduler` as processes of their own against an API server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { type ComponentProcess, startComponent, writeKubeconfig } from "../../testing/apiserver/component-process.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { until } from "../../testing/std/until.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";
const PODS = "/api/v1/namespaces/default/pods";

async function expectCreated(server: ServerProcess, path: string, object: unknown): Promise<void> {
  const { status, json } = await server.send("POST", path, object);
  if (status !== 201) throw new Error(JSON.stringify(json));
}

async function createNode(server: ServerProcess, name: string): Promise<void> {
  await expectCreated(server, "/api/v1/nodes", { metadata: { name } });
  const node = (await server.send("GET", `/api/v1/nodes/${name}`)).json;
  const amounts = { cpu: "4", memory: "8Gi", pods: "110" };
  const status = { capacity: amounts, allocatable: amounts, conditions: [{ type: "Ready", status: "True" }] };
  const ready = await server.send("PUT", `/api/v1/nodes/${name}`, { ...node, spec: { taints: [] } });
  await server.send("PUT", `/api/v1/nodes/${name}/status`, { ...ready.json, status });
}

async function createPod(server: ServerProcess, name: string, schedulerName?: string): Promise<void> {
  const spec = { schedulerName, containers: [{ name: "c", image: "img:1", resources: { requests: { cpu: "1" } } }] };
  await expectCreated(server, PODS, { metadata: { name }, spec });
}

async function waitForNode(server: ServerProcess, pod: string, scheduler: ComponentProcess): Promise<string> {
  return await until(
    () => `the pod ${pod} is bound; errors: ${scheduler.errors()}`,
    async () => (await server.send("GET", `${PODS}/${pod}`)).json.spec?.nodeName || undefined,
  );
}

async function holderOf(server: ServerProcess): Promise<string> {
  return (await server.send("GET", LEASE)).json.spec?.holderIdentity ?? "";
}

const CONFIG = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
`;

t.test("two schedulers: one works, and the other goes on when it is killed", { timeout: 120_000 }, async (t) => {
  const home = t.testdir();
  await using server = await startServerProcess({ home, store: join(home, "store") });
  const kubeconfig = writeKubeconfig(home, server);
  await expectCreated(server, "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  await createNode(server, "a");
  await createNode(server, "b");
  const config = join(home, "config.yaml");
  writeFileSync(config, CONFIG);
  const first = startComponent(t, "scheduler", kubeconfig, `--config=${config}`);
  await until(
    () => `there is a leader; errors: ${first.errors()}`,
    async () => (await holderOf(server)) !== "" || undefined,
  );
  const leader = await holderOf(server);
  const second = startComponent(t, "scheduler", kubeconfig, `--config=${config}`);
  await createPod(server, "one");
  const node = await waitForNode(server, "one", first);
  await createPod(server, "packed", "packer");
  t.equal(await waitForNode(server, "packed", first), node, "the profile packs");
  await createPod(server, "spread");
  t.not(await waitForNode(server, "spread", first), node, "the default profile prefers the empty node");
  t.equal(await holderOf(server), leader, "the other scheduler waits");
  first.child.kill("SIGKILL");
  await first.ended;
  await createPod(server, "two");
  t.ok(await waitForNode(server, "two", second));
  t.not(await holderOf(server), leader);
  const { items } = (await server.send("GET", "/apis/events.k8s.io/v1/namespaces/default/events")).json;
  const scheduled = items.filter(({ reason }: { readonly reason: string }) => reason === "Scheduled");
  t.match(scheduled[0], { action: "Binding", reportingController: "default-scheduler", type: "Normal" });
  second.child.kill("SIGTERM");
  t.equal(await second.ended, 0);
  t.equal(await holderOf(server), "", "the lease is released");
});

t.test("mistakes of the operator end the program with one line", async (t) => {
  const home = t.testdir();
  const file = join(home, "config.yaml");
  writeFileSync(file, CONFIG.replace("packer", "default-scheduler"));
  const scheduler = startComponent(t, "scheduler", join(home, "missing"), `--config=${file}`);
  t.equal(await scheduler.ended, 1);
  t.match(scheduler.errors(), /profiles\[1\]\.schedulerName: Duplicate value/);
});
