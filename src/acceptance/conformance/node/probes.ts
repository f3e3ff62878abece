/** Probes and hooks against servers in containers. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Behaviour, type Behaviours, isReady, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { nodeContainer, nodeVolumes, serverPod } from "../harness/node-program.ts";

/** Long enough for several failures in a row of a probe with a period of a second. */
const OBSERVATION_MS = 25_000;
const often = { periodSeconds: 1, failureThreshold: 3 };

function testNoRestart(livenessProbe: object, args: readonly string[] = []): Behaviour {
  return async (at) => {
    await at.runPod(serverPod("alive", { args, container: { livenessProbe: { ...often, ...livenessProbe } } }));
    await sleep(OBSERVATION_MS);
    const pod = await at.pod("alive");
    assert.equal(pod.status.containerStatuses[0].restartCount, 0);
    assert.ok(isReady(pod));
  };
}

async function keepOpenSocket(at: TestNamespace): Promise<void> {
  await testNoRestart({ tcpSocket: { port: 8080 } }, ["healthy=10"])(at);
  const { status } = await at.api.send(`GET ${at.path("pods/alive:8080/proxy/healthz")}`);
  assert.equal(status, 500, "the handler fails since 10 s after the start");
}

async function restartUnhealthy(at: TestNamespace): Promise<void> {
  const livenessProbe = { ...often, httpGet: { path: "/healthz", port: 8080 }, initialDelaySeconds: 3 };
  await at.runPod(serverPod("failing", { args: ["healthy=10"], container: { livenessProbe } }));
  assert.equal((await at.pod("failing")).status.containerStatuses[0].restartCount, 0);
  await at.waitForPod("failing", "a restart", ({ status }) => status.containerStatuses[0].restartCount >= 1);
  const events = await at.api.list(`${at.path("events")}?fieldSelector=involvedObject.name=failing,reason=Unhealthy`);
  // The pod's readiness probe fails too, until the server listens.
  const texts = events.map(({ message }) => String(message));
  assert.ok(
    texts.some((text) => text.startsWith("Liveness probe failed: HTTP probe failed with statuscode: 500")),
    texts.join("; "),
  );
}

/** A server of grpc.health.v1 at port 8080, whose liveness is probed at `port`. */
function grpcPod(port: number) {
  const livenessProbe = { ...often, grpc: { port }, initialDelaySeconds: 2 };
  const container = nodeContainer("cluster/recorded-agent/health-server.ts", ["8080"], { livenessProbe });
  return podOf("grpc", "", { spec: { restartPolicy: "Always", containers: [container], volumes: nodeVolumes } });
}

async function keepGrpc(at: TestNamespace): Promise<void> {
  await at.runPod(grpcPod(8080));
  await sleep(OBSERVATION_MS);
  assert.equal((await at.pod("grpc")).status.containerStatuses[0].restartCount, 0);
  assert.match(await at.log("grpc"), /\/grpc\.health\.v1\.Health\/Check/, "the probe reached the server");
}

async function restartGrpc(at: TestNamespace): Promise<void> {
  await at.create(grpcPod(2333));
  await at.waitForPod("grpc", "a restart", ({ status }) => status.containerStatuses?.[0]?.restartCount >= 1);
}

async function delayReadiness(at: TestNamespace): Promise<void> {
  const DELAY_S = 15;
  const readinessProbe = { httpGet: { path: "/", port: 8080 }, initialDelaySeconds: DELAY_S, periodSeconds: 1 };
  await at.create(serverPod("delayed", { container: { readinessProbe } }));
  const started = await at.waitForPod("delayed", "a started container", ({ status }) => {
    return status.containerStatuses?.[0]?.state.running;
  });
  const { status } = await at.waitReady("delayed");
  const ready = status.conditions.find(({ type }: { type: string }) => type === "Ready");
  const startedAt = Date.parse(started.status.containerStatuses[0].state.running.startedAt);
  const delayMs = Date.parse(ready.lastTransitionTime) - startedAt;
  // Both times are in whole seconds.
  assert.ok(delayMs >= (DELAY_S - 1) * 1000, `ready after ${delayMs} ms`);
  assert.equal(status.containerStatuses[0].restartCount, 0);
}

async function runPostStart(at: TestNamespace): Promise<void> {
  const { status } = await at.runPod(serverPod("server"));
  const script = `wget -q -O /dev/null "http://${status.podIP}:8080/set?key=hook&value=poststart"`;
  const lifecycle = { postStart: { exec: { command: ["sh", "-c", script] } } };
  await at.runPod(podOf("hooked", "while :; do sleep 1; done", { container: { lifecycle } }));
  assert.equal(await at.exec("hooked", `wget -q -O - "http://${status.podIP}:8080/get?key=hook"`), "poststart");
}

export const probes: Behaviours = {
  "Probing container should *not* be restarted with a /healthz http liveness probe": testNoRestart({
    httpGet: { path: "/healthz", port: 8080 },
  }),
  "Probing container should *not* be restarted with a tcp:8080 liveness probe": keepOpenSocket,
  "Probing container should *not* be restarted with a GRPC liveness probe": keepGrpc,
  "Probing container should be restarted with a /healthz http liveness probe": restartUnhealthy,
  "Probing container should be restarted with a GRPC liveness probe": restartGrpc,
  "Probing container with readiness probe should not be ready before initial delay and never restart": delayReadiness,
  "Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart exec hook properly":
    runPostStart,
};
