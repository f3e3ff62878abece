/** `svc agent --tunnel` on a machine that accepts no connection: the API server reaches the agent by the tunnel. */

import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import t, { type Test } from "tap";
import { findMissing } from "../../testing/agent/private-containerd.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { createJoinCommand, Machine, Network } from "./machine.ts";

const INPUT_BYTES = 32 * 2 ** 20;
const WEB = "while true; do echo -e 'HTTP/1.0 200 OK\\r\\n\\r\\nfrom the pod' | nc -l -p 8080; done";
const problem =
  findMissingRequirement() ?? ((await findMissing()).length > 0 ? `${await findMissing()} missing` : undefined);

t.setTimeout(240_000);
if (problem !== undefined) console.error(`Skipped: ${problem}.`);
else {
  t.test("kubectl reaches the pods of a node behind NAT by its tunnel", { timeout: 240_000 }, async (t) => {
    await using network = await Network.create();
    await using cluster = await TestCluster.create({ program: programs.sources, flags: ["--bind-address=0.0.0.0"] });
    await cluster.start();
    await using machine = await Machine.create(network, "t1", 11);
    await machine.refuseConnections();
    machine.startAgent(`${await createJoinCommand(cluster, network)} --tunnel`);
    const fail = (what: string) => (cause: unknown) => {
      throw new Error(`${what}; the agent's log:\n${machine.log()}`, { cause });
    };
    await until("the node is ready", async () => {
      const { code } = await cluster.kubectl(["wait", "--for=condition=Ready", "node/t1", "--timeout=5s"]);
      return code === 0;
    }).catch(fail("not ready"));
    await createPod(cluster, machine);
    const works = async (): Promise<boolean> => (await cluster.kubectl(["logs", "p"])).stdout.startsWith("hello\n");
    await until("the log of the pod", works).catch(fail("no log"));

    await testStreams(t, cluster);
    t.equal(await condition(cluster), "True TunnelOpen");
    const metrics = (await cluster.kubectl(["get", "--raw", "/metrics"])).stdout;
    t.match(metrics, /^apiserver_agent_tunnels 1$/m);
    const agentMetrics = (await cluster.kubectl(["get", "--raw", "/api/v1/nodes/t1/proxy/metrics"])).stdout;
    t.match(agentMetrics, /^kubelet_tunnel_open 1$/m);
    const direct = await command("curl", ["-sk", "-m", "2", `https://${network.address(11)}:10250/healthz`]);
    t.not(direct.code, 0, "the agent's port is closed to this host");
    t.match(await machine.diagnoseTunnel(), { id: "api-server-tunnel", severity: "ok", found: /is open/ });

    await machine.killAgent();
    await until("the API server notices", async () => {
      const { stderr } = await cluster.kubectl(["logs", "p"]);
      return /no tunnel from node t1 is open; last closed at \S+Z: /.test(stderr);
    });
    machine.startAgent(`${await createJoinCommand(cluster, network)} --tunnel`);
    await until("the next agent's tunnel", works).catch(fail("no log after the agent was killed"));

    await cluster.stop("SIGKILL");
    await cluster.start();
    await until("a tunnel to the next API server", works).catch(fail("no log after the API server was killed"));
    await testStreams(t, cluster);
  });
}

async function testStreams(t: Test, cluster: TestCluster): Promise<void> {
  t.match(await cluster.kubectl(["exec", "p", "--", "sh", "-c", "echo out; exit 7"]), { code: 7, stdout: "out\n" });
  const input = randomBytes(INPUT_BYTES / 2).toString("hex");
  const sum = createHash("sha256").update(input).digest("hex");
  const began = performance.now();
  const { stdout, stderr } = await cluster.kubectl(["exec", "-i", "p", "--", "busybox", "sha256sum"], { input });
  t.match(stdout, sum, stderr);
  t.comment(`exec -i: ${Math.round(INPUT_BYTES / 2 ** 20 / ((performance.now() - began) / 1000))} MiB/s`);
  const port = await freePort();
  const forward = spawn("kubectl", ["--kubeconfig", cluster.kubeconfig, "port-forward", "p", `${port}:8080`], {
    stdio: "ignore",
  });
  try {
    await until("the forwarded port", async () => {
      const page = await command("curl", ["-s", "-m", "5", `http://127.0.0.1:${port}/`]);
      return page.stdout.includes("from the pod");
    });
    t.pass("port-forward");
  } finally {
    forward.kill();
    await once(forward, "exit");
  }
}

async function condition(cluster: TestCluster): Promise<string> {
  const each = '.status.conditions[?(@.type=="TunnelReady")]';
  return (await cluster.kubectl(["get", "node", "t1", "-o", `jsonpath={${each}.status} {${each}.reason}`])).stdout;
}

async function createPod(cluster: TestCluster, machine: Machine): Promise<void> {
  const container = {
    name: "c",
    image: machine.image,
    imagePullPolicy: "Never",
    command: ["sh", "-c", `echo hello; ${WEB}`],
  };
  const spec = { nodeName: "t1", terminationGracePeriodSeconds: 0, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec };
  const created = await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(pod) });
  if (created.code !== 0) throw new Error(created.stderr);
}
