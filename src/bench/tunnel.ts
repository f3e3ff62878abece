/** A forwarded port of a pod behind an agent's tunnel. */
import { findMissingRequirement, TestCluster } from "../acceptance/cluster/cluster.ts";
import { createJoinCommand, Machine, Network } from "../acceptance/cluster/machine.ts";
import { findMissing } from "../testing/agent/private-containerd.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { cpuMs } from "./process.ts";
import { apiRequest, BYTES, download, PORT } from "./streams.ts";

const NODE = "t1";

/** The same machine without and with a tunnel: its agent runs from the sources. */
export async function measureTunnel(figures: Figures, program: readonly string[]): Promise<void> {
  const missing = findMissingRequirement() ?? (await findMissing())[0];
  if (missing !== undefined) return console.error(`Skipping section tunnel: ${missing}.`);
  await using network = await Network.create();
  await using cluster = await TestCluster.create({ program, flags: ["--bind-address=0.0.0.0"] });
  await cluster.start("--stop-pods");
  await using machine = await Machine.create(network, NODE, 11);
  const target = { ...(await apiRequest(cluster)), path: "/api/v1/namespaces/default/pods/far/portforward" };
  for (const flags of ["", " --tunnel"]) {
    machine.startAgent(`${await createJoinCommand(cluster, network)}${flags}`);
    await until("the node to be ready", async () => {
      const { code } = await cluster.kubectl(["wait", "--for=condition=Ready", `node/${NODE}`, "--timeout=5s"]);
      return code === 0;
    });
    await createPod(cluster, machine);
    const [server, agent] = [cluster.pid ?? 0, machine.pid ?? 0];
    const before = [cpuMs(server), cpuMs(agent)] as const;
    const seconds = await download(target);
    figures.addAll(`port-forward to another machine${flags === "" ? ", directly" : ", by its tunnel"}`, {
      "MB/s": BYTES / 1e6 / seconds,
      "ms CPU of API server": cpuMs(server) - before[0],
      "ms CPU of agent": cpuMs(agent) - before[1],
    });
    await cluster.kubectl(["delete", "pod", "far", "--grace-period=1"]);
    await machine.stopAgent();
  }
}

async function createPod(cluster: TestCluster, machine: Machine): Promise<void> {
  const command = ["sh", "-c", `exec busybox nc -ll -p ${PORT} -e cat /dev/zero`];
  const container = { name: "c", image: machine.image, imagePullPolicy: "Never", command };
  const spec = { nodeName: NODE, terminationGracePeriodSeconds: 1, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "far" }, spec };
  await until("the pod to run", async () => {
    await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(pod) });
    return (await cluster.kubectl(["wait", "--for=condition=Ready", "pod/far", "--timeout=5s"])).code === 0;
  });
}
