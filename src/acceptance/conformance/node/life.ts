/** The life of containers: defaults of images, init containers, hooks, restarts, probes, and their ends. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import {
  type Behaviour,
  type Behaviours,
  conditionOf,
  containerOf,
  isFinished,
  isReady,
  PAUSE,
  podOf,
  type TestNamespace,
} from "../harness/behaviour.ts";
import { entryImage } from "../harness/entry-image.ts";
import { serverPod } from "../harness/node-program.ts";

/** The output of a container of an image with an entrypoint and arguments. */
function testImageDefaults(container: object, expected: string): Behaviour {
  return async (at) => {
    const { command: _, ...rest } = containerOf("");
    const spec = { containers: [{ ...rest, image: entryImage, ...container }] };
    assert.equal(await at.outputOf(podOf("entry", "", { spec })), expected);
  };
}

async function runInits(at: TestNamespace, restartPolicy: "Always" | "Never"): Promise<Json> {
  const pod = podOf("init", restartPolicy === "Always" ? PAUSE : "true", {
    spec: { restartPolicy, initContainers: [containerOf("true", {}, "init1"), containerOf("true", {}, "init2")] },
  });
  await at.create(pod);
  const found = await at.waitForPod("init", "initialized containers", (found) => {
    return restartPolicy === "Always" ? isReady(found) : isFinished(found);
  });
  assert.equal(conditionOf(found.status, "Initialized").status, "True");
  assert.deepEqual(
    found.status.initContainerStatuses.map(({ state, ready }: Json) => [state.terminated.exitCode, ready]),
    [
      [0, true],
      [0, true],
    ],
  );
  const [first, second] = found.status.initContainerStatuses.map(({ state }: Json) => state.terminated);
  assert.ok(Date.parse(first.finishedAt) <= Date.parse(second.startedAt), "one after the other");
  return found;
}

async function initOnce(at: TestNamespace): Promise<void> {
  const { status } = await runInits(at, "Never");
  assert.equal(status.phase, "Succeeded");
}

async function initAlways(at: TestNamespace): Promise<void> {
  const { status } = await runInits(at, "Always");
  assert.equal(status.phase, "Running");
}

async function failInitNever(at: TestNamespace): Promise<void> {
  const initContainers = [containerOf("true", {}, "init1"), containerOf("false", {}, "init2")];
  await at.create(podOf("init", "true", { spec: { initContainers } }));
  const { status } = await at.waitForPod("init", "the end of the pod", isFinished);
  assert.equal(status.phase, "Failed");
  assert.equal(conditionOf(status, "Initialized").status, "False");
  assert.equal(status.initContainerStatuses[1].state.terminated.exitCode, 1);
  assert.equal(status.containerStatuses[0].state.waiting.reason, "PodInitializing");
  assert.equal(status.containerStatuses[0].started, false);
}

type Handler = (ip: string) => object;
const byHttp: Handler = (host) => ({ httpGet: { host, port: 8080, path: "/set?key=hook&value=called" } });
const byExec: Handler = (ip) => ({
  exec: { command: ["wget", "-q", "-O", "/dev/null", `http://${ip}:8080/set?key=hook&value=called`] },
});

/** The server that the hook calls has seen it, with preStop after the deletion of the pod. */
function testHook(event: "postStart" | "preStop", handler: Handler): Behaviour {
  return async (at) => {
    const { status } = await at.runPod(serverPod("server"));
    const lifecycle = { [event]: handler(status.podIP) };
    const spec = { terminationGracePeriodSeconds: 30 };
    await at.runPod(podOf("hooked", PAUSE, { container: { lifecycle }, spec }));
    const called = async (): Promise<boolean> => {
      const path = at.path("pods/server:8080/proxy/get?key=hook");
      return (await at.api.send(`GET ${path}`)).text === "called";
    };
    if (event === "preStop") {
      assert.equal(await called(), false, "not before the deletion");
      await at.api.delete(at.path("pods/hooked"));
      await at.api.waitGone(at.path("pods/hooked"));
    }
    assert.equal(await called(), true);
  };
}

/** A container that fails at first and succeeds then, under each policy. */
async function exitAsExpected(at: TestNamespace): Promise<void> {
  const script = `
    count=$(cat /v/count 2>/dev/null || echo 0); echo $((count + 1)) > /v/count
    [ $count = 0 ] && exit 1; [ $count = 1 ] && exit 0; sleep 3600 & wait`;
  const run = (restartPolicy: string, initial = 0) =>
    at.create(
      podOf(`policy-${restartPolicy.toLowerCase()}`, initial === 0 ? script : "exit 1", {
        container: { volumeMounts: [{ name: "v", mountPath: "/v" }] },
        spec: { restartPolicy, volumes: [{ name: "v", emptyDir: {} }] },
      }),
    );
  await run("Always");
  await run("OnFailure");
  await run("Never");
  const always = await at.waitForPod("policy-always", "two restarts and a running container", (found) => {
    return found.status.containerStatuses?.[0]?.restartCount === 2 && isReady(found);
  });
  assert.equal(always.status.phase, "Running");
  const onFailure = await at.waitForPod("policy-onfailure", "the end", isFinished);
  assert.equal(onFailure.status.phase, "Succeeded");
  assert.equal(onFailure.status.containerStatuses[0].restartCount, 1);
  const never = await at.waitForPod("policy-never", "the end", isFinished);
  assert.equal(never.status.phase, "Failed");
  assert.equal(never.status.containerStatuses[0].restartCount, 0);
  assert.ok(never.status.containerStatuses[0].state.terminated);
}

/** The message of a container that ends with the code. */
function testTerminationMessage(script: string, expected: string | undefined): Behaviour {
  return async (at) => {
    await at.create(podOf("ending", script, { container: { terminationMessagePolicy: "FallbackToLogsOnError" } }));
    const { status } = await at.waitForPod("ending", "the end", isFinished);
    assert.equal(status.containerStatuses[0].state.terminated.message, expected);
  };
}

const healthFile = (seconds: number): string =>
  `echo ok > /tmp/health; sleep ${seconds}; busybox rm -f /tmp/health; sleep 3600`;
const catHealth = { exec: { command: ["cat", "/tmp/health"] }, periodSeconds: 1, failureThreshold: 2 };

async function keepHealthy(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("alive", healthFile(3600), { container: { livenessProbe: catHealth } }));
  await sleep(20_000);
  assert.equal((await at.pod("alive")).status.containerStatuses[0].restartCount, 0);
}

async function restartUnhealthy(at: TestNamespace): Promise<void> {
  const spec = { restartPolicy: "Always" };
  await at.runPod(podOf("dying", healthFile(10), { container: { livenessProbe: catHealth }, spec }));
  assert.equal((await at.pod("dying")).status.containerStatuses[0].restartCount, 0);
  await at.waitForPod("dying", "a restart", ({ status }) => status.containerStatuses[0].restartCount === 1);
}

async function restartAgain(at: TestNamespace): Promise<void> {
  const livenessProbe = {
    httpGet: { path: "/healthz", port: 8080 },
    periodSeconds: 1,
    failureThreshold: 1,
    initialDelaySeconds: 2,
  };
  await at.create(serverPod("failing", { args: ["healthy=4"], container: { livenessProbe, readinessProbe: null } }));
  let last = 0;
  await until(
    "three restarts",
    async () => {
      const { status } = await at.pod("failing");
      const count = status.containerStatuses?.[0]?.restartCount ?? 0;
      assert.ok(count >= last, `${count} restarts after ${last}`);
      last = count;
      return count >= 3;
    },
    { timeoutMs: 150_000 },
  );
}

async function neverReady(at: TestNamespace): Promise<void> {
  const readinessProbe = { exec: { command: ["false"] }, periodSeconds: 1 };
  await at.create(podOf("unready", PAUSE, { container: { readinessProbe }, spec: { restartPolicy: "Always" } }));
  await at.waitForPod("unready", "a running container", ({ status }) => status.containerStatuses?.[0]?.state.running);
  for (let second = 0; second < 20; second++) {
    const found = await at.pod("unready");
    assert.equal(isReady(found), false);
    assert.equal(found.status.containerStatuses[0].restartCount, 0);
    await sleep(1000);
  }
}

async function submitAndRemove(at: TestNamespace): Promise<void> {
  const selected = `${at.path("pods")}?labelSelector=time%3Dnow`;
  assert.deepEqual(await at.api.list(selected), []);
  using watch = await at.api.watch(selected);
  await at.create(podOf("submitted", PAUSE, { labels: { time: "now" }, spec: { terminationGracePeriodSeconds: 30 } }));
  assert.equal((await at.api.list(selected)).length, 1);
  await watch.wait("ADDED");
  await at.waitReady("submitted");
  await at.api.delete(at.path("pods/submitted"));
  await watch.wait("MODIFIED", ({ metadata }) => metadata.deletionTimestamp !== undefined);
  const { metadata } = await watch.wait("DELETED");
  assert.ok(metadata.deletionTimestamp);
  assert.deepEqual(await at.api.list(selected), []);
}

async function patchStatus(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("stated", PAUSE));
  const path = at.path("pods/stated/status");
  const condition = { type: "example.com/StatusPatched", status: "True", message: "Set by the test" };
  await at.api.patch(path, { status: { conditions: [condition] } }, "strategic");
  const { status } = await at.api.get(path);
  assert.partialDeepStrictEqual(conditionOf(status, condition.type), condition);
}

/** A taint that pods tolerate for a time: they are evicted after it, or not when the taint is removed before. */
async function taint(at: TestNamespace, effect: string | undefined): Promise<void> {
  const { metadata } = await at.node();
  await at.api.update(`/api/v1/nodes/${metadata.name}`, ({ spec }) => {
    const others = (spec.taints ?? []).filter(({ key }: Json) => key !== TAINT);
    spec.taints = effect === undefined ? others : [...others, { key: TAINT, value: "evictTaintVal", effect }];
  });
}

const TAINT = "example.com/evict-taint-key";
const tolerant = (seconds: number) => ({
  tolerations: [
    { key: TAINT, operator: "Equal", value: "evictTaintVal", effect: "NoExecute", tolerationSeconds: seconds },
  ],
});

async function evictInTime(at: TestNamespace): Promise<void> {
  const seconds = { "taint-eviction-b1": 5, "taint-eviction-b2": 20 };
  for (const [name, time] of Object.entries(seconds)) await at.runPod(podOf(name, PAUSE, { spec: tolerant(time) }));
  const began = performance.now();
  await taint(at, "NoExecute");
  try {
    for (const [name, time] of Object.entries(seconds)) {
      await at.api.waitGone(at.path(`pods/${name}`));
      const tookMs = performance.now() - began;
      assert.ok(tookMs >= (time - 1) * 1000, `${name} was evicted after ${tookMs} ms`);
      assert.ok(tookMs <= (time + 15) * 1000, `${name} was evicted after ${tookMs} ms`);
    }
  } finally {
    await taint(at, undefined);
  }
}

async function cancelEviction(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("taint-eviction-4", PAUSE, { spec: tolerant(10) }));
  await taint(at, "NoExecute");
  await sleep(4000);
  await taint(at, undefined);
  await sleep(12_000);
  assert.equal((await at.pod("taint-eviction-4")).metadata.deletionTimestamp, undefined);
}

export const life: Behaviours = {
  "Containers should use the image defaults if command and args are blank": testImageDefaults(
    {},
    "entrypoint default arguments\n",
  ),
  "Containers should be able to override the image's default arguments (container cmd)": testImageDefaults(
    { args: ["other"] },
    "entrypoint other\n",
  ),
  "Containers should be able to override the image's default command (container entrypoint)": testImageDefaults(
    { command: ["/bin/echo", "command"] },
    "command\n",
  ),
  "Containers should be able to override the image's default command and arguments": testImageDefaults(
    { command: ["/bin/echo", "command"], args: ["other"] },
    "command other\n",
  ),
  "InitContainer should invoke init containers on a RestartAlways pod": initAlways,
  "InitContainer should invoke init containers on a RestartNever pod": initOnce,
  "InitContainer should not start app containers and fail the pod if init containers fail on a RestartNever pod":
    failInitNever,
  "Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart http hook properly":
    testHook("postStart", byHttp),
  "Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop exec hook properly": testHook(
    "preStop",
    byExec,
  ),
  "Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop http hook properly": testHook(
    "preStop",
    byHttp,
  ),
  "PreStop should call prestop when killing a pod": testHook("preStop", byExec),
  "Container Runtime blackbox test when starting a container that exits should run with the expected status":
    exitAsExpected,
  "Container Runtime blackbox test on terminated container should report termination message as empty when pod succeeds and TerminationMessagePolicy FallbackToLogsOnError is set":
    testTerminationMessage("echo DONE", undefined),
  "Container Runtime blackbox test on terminated container should report termination message from log output if TerminationMessagePolicy FallbackToLogsOnError is set":
    testTerminationMessage("busybox printf DONE; exit 1", "DONE"),
  'Probing container should *not* be restarted with a exec "cat /tmp/health" liveness probe': keepHealthy,
  'Probing container should be restarted with a exec "cat /tmp/health" liveness probe': restartUnhealthy,
  "Probing container should have monotonically increasing restart count": restartAgain,
  "Probing container with readiness probe that fails should never be ready and never restart": neverReady,
  "Pods should be submitted and removed": submitAndRemove,
  "Pods should patch a pod status": patchStatus,
};

/** They taint the node. */
export const taints: Behaviours = {
  "NoExecuteTaintManager Multiple Pods evicts pods with minTolerationSeconds": evictInTime,
  "NoExecuteTaintManager Single Pod removing taint cancels eviction": cancelEviction,
};
