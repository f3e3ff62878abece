/** The agent's metrics and statistics of containers that run with containerd. */
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import t from "tap";
import { type PrivateContainerd, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";
import { findMissingRequirement } from "./cluster.ts";

const missing = findMissingRequirement();
/** Pods of this test; a measurement sets more. */
const PODS = Number(process.env.SVC_PODS ?? 2);
/** Uses 8 MiB of memory. */
const script = "x=$(head -c 8388608 /dev/zero | tr '\\0' x); while :; do sleep 1; done";

/** As Prometheus: one connection, and compressed pages. */
const connection = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });

function get(port: number, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { "accept-encoding": "gzip" };
  const sent = request({ host: "127.0.0.1", port, path, agent: connection, headers }, (response) => {
    const chunks: Uint8Array[] = [];
    response.on("data", (chunk: Uint8Array) => chunks.push(chunk));
    response.on("error", reject);
    response.on("end", () => {
      const body = Buffer.concat(chunks);
      resolve((response.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body).toString());
    });
  });
  sent.on("error", reject);
  sent.end();
  return promise;
}

/** CPU time of the process, in milliseconds. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.teardown(() => connection.destroy());
  await using containerd: PrivateContainerd = await startPrivateContainerd();
  await t.test("metrics and statistics have the figures of running containers", async (t) => {
    await using node = await AgentProcess.create({ containerd, name: "metrics" });
    for (let index = 0; index < PODS; index++) {
      const container = { name: "c", image: "localhost/bb:1", imagePullPolicy: "Never", command: ["sh", "-c", script] };
      const resources = { limits: { memory: "64Mi", cpu: "500m" }, requests: { memory: "1Mi", cpu: "1m" } };
      const spec = {
        dnsPolicy: "Default",
        terminationGracePeriodSeconds: 1,
        containers: [{ ...container, resources }],
      };
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `p${index}` }, spec };
      writeFileSync(join(node.manifests, `p${index}.yaml`), JSON.stringify(pod));
    }
    node.start("standalone");
    const labels = 'container="c",namespace="default",pod="p0-n1"';
    await until(
      "the pods to run",
      async () => {
        const text = await get(node.port, "/metrics/resource").catch(() => "");
        return (text.match(/^container_cpu_usage_seconds_total\{/gm) ?? []).length === PODS ? true : undefined;
      },
      { timeoutMs: 180_000 },
    );
    await until("memory to be used", async () => {
      const text = await get(node.port, "/metrics/resource");
      const [, bytes] = new RegExp(`container_memory_working_set_bytes\\{${labels}\\} (\\S+) \\d+\n`).exec(text) ?? [];
      return Number(bytes) > 8_388_608 ? true : undefined;
    });
    const containers = await get(node.port, "/metrics/cadvisor");
    const sample = (name: string, own: string): number => {
      const line = containers.split("\n").find((each) => each.startsWith(`${name}{`) && each.includes(own));
      return Number(/\} (\S+)/.exec(line ?? "")?.[1]);
    };
    const own = 'image="localhost/bb:1",name=';
    t.ok(sample("container_memory_working_set_bytes", own) > 8_388_608);
    t.ok(sample("container_cpu_usage_seconds_total", own) > 0);
    t.equal(sample("container_spec_memory_limit_bytes", own), 64 * 2 ** 20);
    t.equal(sample("container_spec_cpu_quota", own), 50_000);
    t.ok(sample("container_processes", own) >= 1);
    t.ok(sample("container_file_descriptors", own) >= 3);
    t.ok(sample("container_start_time_seconds", own) > 1.7e9);
    t.ok(sample("container_network_receive_bytes_total", 'interface="eth0"') >= 0, "of the sandbox");
    t.ok(sample("container_cpu_usage_seconds_total", 'id="/",') > 0, "of the node");
    t.ok(sample("container_fs_limit_bytes", 'id="/",') > 0);

    const summary = JSON.parse(await get(node.port, "/stats/summary"));
    t.equal(summary.pods.length, PODS);
    t.match(summary.pods[0], {
      podRef: { namespace: "default" },
      containers: [{ name: "c", cpu: { usageCoreNanoSeconds: Number }, memory: { availableBytes: Number } }],
      network: { name: "eth0" },
    });
    t.ok(summary.pods[0].containers[0].rootfs.capacityBytes > 0);
    t.ok(summary.node.runtime.imageFs.capacityBytes > 0);
    t.ok(summary.node.memory.workingSetBytes > 0);
    const metrics = await get(node.port, "/metrics");
    t.match(metrics, new RegExp(`^kubelet_running_pods ${PODS}$`, "m"));
    t.match(metrics, new RegExp(`^kubelet_started_containers_total\\{container_type="container"\\} ${PODS}$`, "m"));
    t.match(metrics, /^kubelet_runtime_operations_total\{operation_type="run_podsandbox"\} /m);

    const rounds = Number(process.env.SVC_SCRAPES ?? 0);
    for (const path of ["/metrics/cadvisor", "/metrics/resource", "/stats/summary", "/metrics"]) {
      if (rounds === 0) continue;
      const before = cpuMs(node.pid);
      const began = performance.now();
      for (let round = 0; round < rounds; round++) await get(node.port, path);
      const took = performance.now() - began;
      t.comment(
        `${path}: ${((cpuMs(node.pid) - before) / rounds).toFixed(1)} ms of CPU, ${(took / rounds).toFixed(1)} ms, ${(await get(node.port, path)).length} bytes`,
      );
    }
  });
}
