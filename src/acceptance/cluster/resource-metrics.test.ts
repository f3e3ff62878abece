/** `kubectl top`, and the paths that Prometheus scrapes, against the figures of control groups. */
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { CoreV1Api, KubeConfig, Metrics, topPods } from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";

t.setTimeout(300_000);
const missing = findMissingRequirement();
const API = "/apis/metrics.k8s.io/v1beta1";
/** Millicores. */
const LIMIT = 200;
/** Fills 8 MiB of memory, then uses the CPU. */
const script = `x=0123456789abcdef; for i in ${"i ".repeat(19)}; do x=$x$x; done; while :; do :; done`;

function manifest(): string {
  const common = { image: exampleImage, resources: { requests: { cpu: "1m", memory: "1Mi" } } };
  const limited = { requests: { cpu: "1m", memory: "1Mi" }, limits: { cpu: `${LIMIT}m`, memory: "64Mi" } };
  const pod = (name: string, serviceAccountName: string, containers: readonly object[]): object => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels: { app: name } },
    spec: { terminationGracePeriodSeconds: 0, serviceAccountName, containers },
  });
  const burn = { ...common, name: "burn", command: ["sh", "-c", script], resources: limited };
  const idle = { ...common, name: "idle", command: ["sleep", "3600"] };
  const reader = { name: "prometheus", namespace: "default" };
  const rbac = "rbac.authorization.k8s.io";
  const rules = [{ apiGroups: [""], resources: ["nodes", "nodes/proxy", "nodes/metrics"], verbs: ["get", "list"] }];
  const items = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: reader },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...reader, name: "nobody" } },
    pod("burner", "prometheus", [burn, idle]),
    pod("sleeper", "nobody", [idle]),
    { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: { name: "prometheus" }, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "prometheus" },
      subjects: [{ kind: "ServiceAccount", ...reader }],
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "prometheus" },
    },
  ];
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

/** The control group of a pod below the mount point of a hierarchy. */
function podCgroup(uid: string, hierarchy: string, depth = 6): string | undefined {
  const names = [uid, uid.replaceAll("-", "_")];
  for (const entry of readdirSync(hierarchy, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const path = join(hierarchy, entry.name);
    if (names.some((name) => entry.name.includes(name))) return path;
    const found = depth === 0 ? undefined : podCgroup(uid, path, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function readNumber(path: string, key?: string): number | undefined {
  try {
    const content = readFileSync(path, "utf8");
    return Number(key === undefined ? content : new RegExp(`^${key} (\\d+)$`, "m").exec(content)?.[1]);
  } catch {
    return undefined;
  }
}

/** Seconds of CPU and bytes of memory of a pod with its sandbox, on cgroup v1 and v2. */
function readPodUsage(uid: string): { readonly cpuSeconds: number; readonly memoryBytes: number } {
  const find = (name: string): string => podCgroup(uid, `/sys/fs/cgroup/${name}`) ?? "";
  const unified = find("");
  const micros = readNumber(join(unified, "cpu.stat"), "usage_usec");
  if (micros !== undefined && !Number.isNaN(micros)) {
    const bytes = readNumber(join(unified, "memory.current")) ?? 0;
    const inactive = readNumber(join(unified, "memory.stat"), "inactive_file") ?? 0;
    return { cpuSeconds: micros / 1e6, memoryBytes: bytes - inactive };
  }
  const bytes = readNumber(join(find("memory"), "memory.usage_in_bytes")) ?? 0;
  const inactive = readNumber(join(find("memory"), "memory.stat"), "total_inactive_file") ?? 0;
  const nanos = readNumber(join(find("cpuacct"), "cpuacct.usage")) ?? 0;
  return { cpuSeconds: nanos / 1e9, memoryBytes: bytes - inactive };
}

/** The rows of a table of `kubectl top` by their first column. */
function rowsOf(stdout: string): ReadonlyMap<string, readonly string[]> {
  const rows = stdout.trim().split("\n").slice(1);
  return new Map(rows.map((row) => row.trim().split(/\s+/)).map((cells) => [cells[0] ?? "", cells]));
}

/** `200m` in millicores, `11Mi` in MiB. */
const amount = (cell: string | undefined): number => Number(/^(\d+)(?:m|Mi)$/.exec(cell ?? "")?.[1]);

async function testTop(t: Test, cluster: TestCluster, binary: string, uid: string): Promise<void> {
  const run = async (args: string): Promise<string> => {
    const { code, stdout, stderr } = await cluster.kubectl(args.split(" "), { binary });
    t.equal(code, 0, `kubectl ${args}: ${stderr}`);
    return stdout;
  };
  const node = rowsOf(await run("top node")).get("e2e");
  t.ok(amount(node?.[1]) >= LIMIT / 2, `the node uses at least what its pods use: ${node}`);
  t.ok(amount(node?.[3]) > 50, `${node}`);
  t.match(await run("top node e2e"), /^e2e +\d+m +\d+% +\d+Mi +\d+%/m);

  const began = { at: performance.now(), ...readPodUsage(uid) };
  await sleep(17_000);
  const containers = (await run("top pod burner --containers")).trim().split("\n").slice(1);
  const ended = { at: performance.now(), ...readPodUsage(uid) };
  const rate = ((ended.cpuSeconds - began.cpuSeconds) / (ended.at - began.at)) * 1e6;
  const cells = new Map(containers.map((row) => row.split(/\s+/)).map((row) => [row[1], row] as const));
  t.same([...cells.keys()].sort(), ["burn", "idle"]);
  const burn = amount(cells.get("burn")?.[2]);
  t.ok(burn > rate * 0.7 && burn < rate * 1.3, `${burn}m of ${rate.toFixed(0)}m in the control group`);
  t.ok(amount(cells.get("idle")?.[2]) <= 20, `${cells.get("idle")}`);
  const mebibytes = amount(cells.get("burn")?.[3]) + amount(cells.get("idle")?.[3]);
  const whole = ended.memoryBytes / 2 ** 20;
  t.ok(
    mebibytes >= 8 && mebibytes <= whole + 2 && mebibytes >= whole - 8,
    `${mebibytes} MiB of ${whole.toFixed(1)} MiB with the sandbox`,
  );

  const sorted = [...(await run("top pod -A --sort-by=cpu")).matchAll(/^default +(\S+)/gm)].map(([, name]) => name);
  t.same(sorted, ["burner", "sleeper"]);
  t.same([...rowsOf(await run("top pod -l app=sleeper")).keys()], ["sleeper"]);
  t.match(await run("get podmetrics -A"), /^NAMESPACE +NAME +CPU +MEMORY +WINDOW\n(.*\n)*default +burner +\d+[num] /);
  t.match(await run("get nodemetrics"), /^NAME +CPU +MEMORY +WINDOW\ne2e +\d+[num] +\d+Ki +[\d.]+s\n/);
  const none = await cluster.kubectl(["top", "pod", "none"], { binary });
  t.match(none, { code: 1, stderr: /pods "none" not found/ });
}

/** A token that is bound to a pod. */
async function tokenOf(cluster: TestCluster, account: string, name: string): Promise<string> {
  const boundObjectRef = { kind: "Pod", apiVersion: "v1", name };
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { boundObjectRef } };
  const path = `/api/v1/namespaces/default/serviceaccounts/${account}/token`;
  const { stdout, stderr } = await cluster.kubectl(["create", "--raw", path, "-f", "-"], {
    input: JSON.stringify(body),
  });
  if (!stdout.startsWith("{")) throw new Error(`Cannot create a token: ${stderr}`);
  return (JSON.parse(stdout) as { readonly status: { readonly token: string } }).status.token;
}

async function getFromAgent(host: string, port: number, path: string, token: string): Promise<[number, string]> {
  const { promise, resolve, reject } = Promise.withResolvers<[number, string]>();
  const headers = { authorization: `Bearer ${token}` };
  request({ host, port, path, headers, rejectUnauthorized: false, agent: false }, (response) => {
    text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
  })
    .on("error", reject)
    .end();
  return await promise;
}

async function testPrometheus(t: Test, cluster: TestCluster): Promise<void> {
  const { stdout } = await cluster.kubectl(["get", "node", "e2e", "-o", "json"]);
  const { status } = JSON.parse(stdout) as {
    readonly status: {
      readonly addresses: readonly { readonly type: string; readonly address: string }[];
      readonly daemonEndpoints: { readonly kubeletEndpoint: { readonly Port: number } };
    };
  };
  const host = status.addresses.find(({ type }) => type === "InternalIP")?.address ?? "";
  const port = status.daemonEndpoints.kubeletEndpoint.Port;
  const pages = {
    "/metrics": /^kubelet_running_pods \d+$/m,
    "/metrics/cadvisor": /^container_cpu_usage_seconds_total\{container="burn",.*pod="burner"\} \d/m,
    "/metrics/resource": /^container_memory_working_set_bytes\{container="idle",namespace="default",pod="sleeper"\} /m,
    "/metrics/probes": undefined,
  } as const;
  for (const [account, pod] of [
    ["prometheus", "burner"],
    ["nobody", "sleeper"],
  ] as const) {
    const token = await tokenOf(cluster, account, pod);
    const access = ["--kubeconfig=/dev/null", `--server=https://127.0.0.1:${cluster.port}`, `--token=${token}`];
    for (const [path, content] of Object.entries(pages)) {
      const raw = ["get", "--raw", `/api/v1/nodes/e2e/proxy${path}`, ...access, "--insecure-skip-tls-verify"];
      const proxied = await cluster.kubectl(raw);
      const [code, body] = await getFromAgent(host, port, path, token);
      if (account === "nobody") {
        t.match(proxied, {
          code: 1,
          stderr: /cannot get resource "nodes\/proxy" in API group "" at the cluster scope/,
        });
        t.equal(code, 403, `${path}: ${body}`);
        continue;
      }
      t.equal(proxied.code, 0, `${path}: ${proxied.stderr}`);
      t.equal(code, 200, `${path}: ${body.slice(0, 200)}`);
      if (content !== undefined) for (const page of [proxied.stdout, body]) t.match(page, content, path);
    }
  }
}

async function testClientNode(t: Test, cluster: TestCluster): Promise<void> {
  const config = new KubeConfig();
  config.loadFromFile(cluster.kubeconfig);
  const metrics = new Metrics(config);
  t.match(await metrics.getNodeMetrics(), { kind: "NodeMetricsList", items: [{ metadata: { name: "e2e" } }] });
  const pods = await topPods(config.makeApiClient(CoreV1Api), metrics, "default");
  const burner = pods.find(({ Pod }) => Pod.metadata?.name === "burner");
  t.ok(Number(burner?.CPU.CurrentUsage) > (LIMIT / 1000) * 0.5, `${burner?.CPU.CurrentUsage} cores`);
  t.ok(Number(burner?.Memory.CurrentUsage) > 8 * 2 ** 20, `${burner?.Memory.CurrentUsage} bytes`);
}

/** Releases of kubectl: `v1.33.1` and the path. */
async function oldestAndNewest(cluster: TestCluster): Promise<readonly (readonly [string, string])[]> {
  const releases = new Map<string, string>();
  for (const binary of kubectlPaths()) {
    const { stdout } = await cluster.kubectl(["version", "--client", "-o", "json"], { binary });
    const { clientVersion } = JSON.parse(stdout) as { readonly clientVersion: { readonly gitVersion: string } };
    releases.set(clientVersion.gitVersion, binary);
  }
  const minor = ([version]: readonly [string, string]): number => Number(version.split(".")[1]);
  const sorted = [...releases].sort((a, b) => minor(a) - minor(b));
  return sorted.filter((_, index) => index === 0 || index === sorted.length - 1);
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("kubectl top shows what nodes and pods use", { timeout: 300_000 }, async (t) => {
    await using cluster = await TestCluster.create({ program: programs.sources });
    await cluster.start("--stop-pods");
    const applied = await cluster.kubectl(["apply", "-f", "-"], { input: manifest() });
    t.equal(applied.code, 0, applied.stderr);
    const ready = ["wait", "--for=condition=Ready", "pod/burner", "pod/sleeper", "--timeout=90s"];
    t.match(await cluster.kubectl(ready), { code: 0 });
    const { stdout: uid } = await cluster.kubectl(["get", "pod", "burner", "-o", "jsonpath={.metadata.uid}"]);
    const first = performance.now();
    const nodes = await cluster.kubectl(["get", "--raw", `${API}/nodes`]);
    t.match(nodes.stdout, /"kind":"NodeMetricsList".*"name":"e2e"/);
    t.comment(`the first request took ${Math.round(performance.now() - first)} ms`);
    await until("the metrics of both pods", async () => {
      const { stdout } = await cluster.kubectl(["get", "--raw", `${API}/pods`]);
      return stdout.includes('"name":"burner"') && stdout.includes('"name":"sleeper"') ? true : undefined;
    });
    for (const [version, binary] of await oldestAndNewest(cluster)) {
      await t.test(`kubectl ${version}`, { timeout: 120_000 }, (t) => testTop(t, cluster, binary, uid));
    }
    await t.test("Kubernetes' JavaScript client", { timeout: 60_000 }, (t) => testClientNode(t, cluster));
    await t.test("Prometheus' paths", { timeout: 120_000 }, (t) => testPrometheus(t, cluster));
    t.equal(await cluster.stop(), 0);
  });
}
