/** An agent that ends during an eviction: the pod ends with the eviction's status, and its containers do not return. */
import { setTimeout } from "node:timers/promises";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { createTestAgent, type TestAgent } from "../../testing/agent/flag-harness.ts";
import { setMemory } from "../flag-effects/agent/eviction-effects.ts";

const GIB = 2 ** 30;

function statusOf(agent: TestAgent, name: string): NonNullable<Pod["status"]> {
  return (agent.api.objects.get(`/api/v1/namespaces/default/pods/${name}`) as Pod | undefined)?.status ?? {};
}

const starts = (agent: TestAgent): number =>
  agent.fake.calls.filter(({ method }) => method === "startContainer").length;
const stops = (agent: TestAgent): number => agent.fake.calls.filter(({ method }) => method === "stopContainer").length;
const runs = (agent: TestAgent): boolean =>
  agent.fake.containersNamed("c").some(({ status }) => status.state === "CONTAINER_RUNNING");

function findDisruption(agent: TestAgent) {
  return statusOf(agent, "web").conditions?.find(({ type }) => type === "DisruptionTarget");
}

/** Each ends the agent at another step. */
const steps: Readonly<Record<string, (agent: TestAgent) => Promise<void>>> = {
  async "while a container is being stopped"(agent) {
    const release = agent.fake.hold("stopContainer");
    setMemory(agent, GIB / 2);
    await agent.until("the container is being stopped", () => stops(agent) === 1);
    await agent.stop();
    release();
  },
  async "after the containers have stopped, before the sandbox"(agent) {
    const release = agent.fake.hold("stopPodSandbox");
    setMemory(agent, GIB / 2);
    await agent.until("the container has stopped", () => stops(agent) === 1 && !runs(agent));
    await agent.stop();
    release();
  },
  async "before the status is reported"(agent) {
    setMemory(agent, GIB / 2);
    const release = agent.fake.hold("stopContainer");
    await agent.until("the container is being stopped", () => stops(agent) === 1);
    agent.api.isDown = true;
    release();
    await agent.until("the container has stopped", () => !runs(agent));
    await agent.stop();
    agent.api.isDown = false;
  },
};

for (const [step, end] of Object.entries(steps)) {
  t.test(`an agent that ends ${step} continues the eviction after its restart`, async (t) => {
    await using agent = await createTestAgent("flag", { "eviction-hard": "memory.available<1Gi" });
    await agent.start();
    agent.createPod("web");
    await agent.untilRunning("web");
    await end(agent);
    t.not(statusOf(agent, "web").phase, "Failed", "not yet reported");
    setMemory(agent, 3 * GIB);
    await agent.start();
    await agent.until("the status", () => statusOf(agent, "web").phase === "Failed");
    t.match(statusOf(agent, "web"), { reason: "Evicted", message: /^The node was low on resource: memory. / });
    await setTimeout(10);
    t.equal(starts(agent), 1, "the container was not started again");
    t.notOk(runs(agent));
    agent.createPod("next");
    await agent.untilRunning("next");
  });
}

t.test("an agent that ends after the last status leaves it as it is, and evicts no other pod", async (t) => {
  await using agent = await createTestAgent("flag", { "eviction-hard": "memory.available<1Gi" });
  await agent.start();
  agent.createPod("web");
  await agent.untilRunning("web");
  const release = agent.fake.hold("removePodSandbox");
  setMemory(agent, GIB / 2);
  await agent.until("the status", () => statusOf(agent, "web").phase === "Failed");
  await agent.until("no container runs", () => !runs(agent));
  const { reason, message } = statusOf(agent, "web");
  const disruption = findDisruption(agent);
  t.match(disruption, { status: "True", reason: "TerminationByKubelet" });
  setMemory(agent, 3 * GIB);
  await agent.stop();
  release();
  await agent.start();
  const restartedAt = agent.clock.monotonic();
  await agent.until("half a minute has passed", () => agent.clock.monotonic() - restartedAt > 30_000);
  t.match(statusOf(agent, "web"), { phase: "Failed", reason, message });
  t.same(findDisruption(agent), disruption);
  t.equal(starts(agent), 1);
});

t.test("a node under memory pressure rejects BestEffort pods", async (t) => {
  await using agent = await createTestAgent("flag", { "eviction-hard": "memory.available<1Gi" });
  await agent.start();
  setMemory(agent, GIB / 2);
  const hasPressure = () =>
    (
      agent.getNode().status as NonNullable<{ conditions: readonly { type: string; status: string }[] }>
    ).conditions.some(({ type, status }) => type === "MemoryPressure" && status === "True");
  await agent.until("the pressure", hasPressure);
  agent.createPod("cheap");
  await agent.until("the rejection", () => statusOf(agent, "cheap").phase === "Failed");
  t.match(statusOf(agent, "cheap"), {
    reason: "Evicted",
    message: "Pod was rejected: The node had condition: [MemoryPressure]. ",
  });
  const events = agent.api.listBelow("/api/v1/namespaces/default/events") as readonly { readonly reason?: string }[];
  t.ok(events.some(({ reason }) => reason === "NodeHasInsufficientMemory"));
  t.ok(events.some(({ reason }) => reason === "EvictionThresholdMet"));
});
