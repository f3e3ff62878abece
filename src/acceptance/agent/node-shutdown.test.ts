/** The machine shuts down: the agent ends its pods in order, and after the boot the node works again. */
import { join } from "node:path";
import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { createTestAgent, type TestAgent } from "../../testing/agent/flag-harness.ts";

const MESSAGE = "Pod was terminated in response to imminent node shutdown.";
const CRITICAL = 2_000_000_000;
const MANIFEST = `
apiVersion: v1
kind: Pod
metadata: {name: static}
spec: {containers: [{name: static, image: "busybox:1", imagePullPolicy: IfNotPresent}]}
`;

function statusOf(agent: TestAgent, name: string): NonNullable<Pod["status"]> {
  return (agent.api.objects.get(`/api/v1/namespaces/default/pods/${name}`) as Pod | undefined)?.status ?? {};
}

function readiness(agent: TestAgent) {
  return (agent.getNode() as Node).status?.conditions?.find(({ type }) => type === "Ready");
}

function runs(agent: TestAgent, container: string): boolean {
  return agent.fake.containersNamed(container).some(({ status }) => status.state === "CONTAINER_RUNNING");
}

const container = (name: string) => ({ name, image: "busybox:1", imagePullPolicy: "IfNotPresent" as const });

t.test("pods end by priority while the machine waits; after the boot static pods and new ones run", async (t) => {
  const directory = t.testdir({
    "agent.yaml":
      "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n" +
      "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n",
    manifests: { "static.yaml": MANIFEST },
  });
  await using agent = await createTestAgent("flag", {
    config: join(directory, "agent.yaml"),
    "pod-manifest-path": join(directory, "manifests"),
  });
  await agent.start();
  agent.createPod("web", { containers: [container("web")] });
  agent.createPod("dns", { containers: [container("dns")], priority: CRITICAL });
  await agent.untilRunning("web");
  await agent.untilRunning("dns");
  await agent.until("the static pod runs", () => runs(agent, "static"));
  await agent.until("the lock is taken", () => agent.logind.locks === 1);
  t.equal(agent.logind.delayMs, 30_000);

  const release = agent.fake.hold("stopContainer");
  agent.logind.notify(true);
  await agent.until("the node is not ready", () => readiness(agent)?.status === "False");
  t.match(readiness(agent), { reason: "KubeletNotReady", message: "node is shutting down" });
  agent.createPod("late");
  await agent.until("a new pod is rejected", () => statusOf(agent, "late").phase === "Failed");
  t.match(statusOf(agent, "late"), {
    reason: "NodeShutdown",
    message: "Pod was rejected: Pod was rejected as the node is shutting down.",
  });
  t.ok(runs(agent, "dns") && runs(agent, "static"), "critical pods run until the others have ended");
  t.equal(agent.logind.locks, 1, "the machine waits");
  release();
  await agent.until("the lock is released", () => agent.logind.locks === 0);
  for (const name of ["web", "dns"]) {
    t.match(statusOf(agent, name), { phase: "Failed", reason: "Terminated", message: MESSAGE });
    const disruption = statusOf(agent, name).conditions?.find(({ type }) => type === "DisruptionTarget");
    t.match(disruption, { status: "True", reason: "TerminationByKubelet", message: MESSAGE });
  }
  const stopped = agent.fake.calls.filter(({ method }) => method === "stopContainer");
  t.equal(stopped.length, 3);
  t.notOk(runs(agent, "web") || runs(agent, "dns") || runs(agent, "static"));
  await agent.stop();

  // The boot.
  await agent.start();
  await agent.until("the static pod runs again", () => runs(agent, "static"));
  await agent.until("the node is ready", () => readiness(agent)?.status === "True");
  agent.createPod("next");
  await agent.untilRunning("next");
  t.notOk(runs(agent, "web"), "a failed pod does not run again");
  t.equal(statusOf(agent, "web").phase, "Failed");
  await agent.until("the next lock is taken", () => agent.logind.locks === 1);
});
