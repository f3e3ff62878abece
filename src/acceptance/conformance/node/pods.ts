/** Pods as objects: updates, deadlines, collections, status, quality of service, ephemeral containers. */
import assert from "node:assert/strict";
import {
  type Behaviour,
  type Behaviours,
  conditionOf,
  containerOf,
  isFinished,
  PAUSE,
  podOf,
  type TestNamespace,
} from "../harness/behaviour.ts";

async function updateLabels(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("updated", PAUSE, { labels: { time: "first" } }));
  const found = (value: string) => at.api.list(`${at.path("pods")}?labelSelector=time%3D${value}`);
  assert.equal((await found("first")).length, 1);
  await at.api.update(at.path("pods/updated"), ({ metadata }) => {
    metadata.labels.time = "second";
  });
  assert.equal((await found("second")).length, 1);
  assert.equal((await found("first")).length, 0);
}

async function updateDeadline(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("limited", PAUSE, { labels: { time: "first" } }));
  assert.equal((await at.api.list(`${at.path("pods")}?labelSelector=time%3Dfirst`)).length, 1);
  await at.api.update(at.path("pods/limited"), ({ spec }) => {
    spec.activeDeadlineSeconds = 5;
  });
  const { status } = await at.waitForPod("limited", "the end by the deadline", isFinished);
  assert.equal(status.phase, "Failed");
  assert.equal(status.reason, "DeadlineExceeded");
}

async function deleteCollection(at: TestNamespace): Promise<void> {
  const names = ["pod-1", "pod-2", "pod-3"];
  for (const name of names) await at.create(podOf(name, PAUSE, { labels: { type: "Testing" } }));
  await at.create(podOf("other", PAUSE));
  for (const name of names) await at.waitReady(name);
  const selected = `${at.path("pods")}?labelSelector=type%3DTesting`;
  assert.equal((await at.api.list(selected)).length, names.length);
  await at.api.delete(selected);
  for (const name of names) await at.api.waitGone(at.path(`pods/${name}`));
  assert.deepEqual(await at.api.list(selected), []);
  assert.equal((await at.pod("other")).metadata.deletionTimestamp, undefined);
}

async function getHostIp(at: TestNamespace): Promise<void> {
  const { status } = await at.runPod(podOf("hosted", PAUSE));
  const node = await at.node();
  const addresses = node.status.addresses.map(({ address }: { address: string }) => address);
  assert.ok(addresses.includes(status.hostIP), status.hostIP);
  assert.ok(status.hostIPs.some(({ ip }: { ip: string }) => ip === status.hostIP));
}

async function testLifecycle(at: TestNamespace): Promise<void> {
  using watch = await at.api.watch(`${at.path("pods")}?labelSelector=test-pod-static%3Dtrue`);
  const pod = podOf("static", PAUSE, { labels: { "test-pod-static": "true" } });
  await at.create(pod);
  await watch.wait("ADDED");
  await watch.wait("MODIFIED", ({ status }) => conditionOf(status, "Ready")?.status === "True");
  const path = at.path("pods/static");
  await at.api.patch(
    path,
    {
      metadata: { labels: { "test-pod": "patched" } },
      spec: { containers: [{ name: "c", image: pod.spec.containers[0]!.image }] },
    },
    "strategic",
  );
  await watch.wait("MODIFIED", ({ metadata }) => metadata.labels["test-pod"] === "patched");
  await at.api.get(`${path}/status`);
  // The agent's next status update may come at any time; what it does not own stays.
  await at.api.update(`${path}/status`, ({ status }) => {
    status.conditions.push({ type: "example.com/Replaced", status: "True" });
  });
  await watch.wait("MODIFIED", ({ status }) => conditionOf(status, "example.com/Replaced")?.status === "True");
  const { status } = await at.api.get(`${path}/status`);
  assert.equal(conditionOf(status, "example.com/Replaced")?.status, "True");
  await at.api.delete(path);
  await watch.wait("DELETED");
}

async function setQosClass(at: TestNamespace): Promise<void> {
  const resources = { requests: { cpu: "100m", memory: "100Mi" }, limits: { cpu: "100m", memory: "100Mi" } };
  await at.create(podOf("guaranteed", PAUSE, { container: { resources } }));
  assert.equal((await at.pod("guaranteed")).status.qosClass, "Guaranteed");
}

async function addEphemeralContainers(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("debugged", PAUSE));
  const path = at.path("pods/debugged/ephemeralcontainers");
  const running = async (name: string): Promise<void> => {
    await at.waitForPod("debugged", `the ephemeral container ${name}`, ({ status }) => {
      const container = status.ephemeralContainerStatuses?.find((each: { name: string }) => each.name === name);
      return container?.state.running;
    });
  };
  const first = containerOf("echo polo; while :; do sleep 1; done", {}, "debugger");
  await at.api.patch(path, { spec: { ephemeralContainers: [first] } }, "strategic");
  await running("debugger");
  await at.waitForLog("debugged", /polo/, { container: "debugger" });
  assert.equal((await at.pod("debugged")).spec.ephemeralContainers.length, 1);
  await at.api.update(path, ({ spec }) => {
    spec.ephemeralContainers.push(containerOf("while :; do sleep 1; done", {}, "debugger2"));
  });
  await running("debugger2");
  assert.equal((await at.pod("debugged")).spec.ephemeralContainers.length, 2);
}

async function failInit(at: TestNamespace): Promise<void> {
  const pod = podOf("init", "true", {
    spec: {
      restartPolicy: "Always",
      initContainers: [containerOf("false", {}, "init1"), containerOf("true", {}, "init2")],
    },
  });
  await at.create(pod);
  const { status } = await at.waitForPod(
    "init",
    "three restarts of the first init container",
    ({ status }) => status.initContainerStatuses?.[0]?.restartCount >= 3,
    200_000,
  );
  assert.equal(status.phase, "Pending");
  assert.deepEqual(Object.keys(status.initContainerStatuses[1].state), ["waiting"]);
  assert.deepEqual(status.containerStatuses[0].state, { waiting: { reason: "PodInitializing" } });
  assert.equal(status.containerStatuses[0].restartCount, 0);
  assert.equal(conditionOf(status, "Initialized").status, "False");
  assert.equal(conditionOf(status, "Initialized").reason, "ContainersNotInitialized");
}

const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "test" }, stringData: { "data-1": "value-1" } };

/** A container's environment has the secret. No shell prints it, since shells drop names with a dash. */
function testSecretVariables(container: object, ...expected: readonly string[]): Behaviour {
  return async (at) => {
    await at.create(secret);
    const lines = (await at.outputOf(podOf("reader", "", { container: { command: ["env"], ...container } }))).split(
      "\n",
    );
    for (const line of expected) assert.ok(lines.includes(line), `${line} among ${lines}`);
  };
}

async function rejectDeletedRuntimeClass(at: TestNamespace): Promise<void> {
  const runtimeClass = {
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: at.name },
    handler: "absent",
  };
  await at.create(runtimeClass);
  await at.api.delete(at.pathOfObject(runtimeClass));
  await at.api.waitGone(at.pathOfObject(runtimeClass));
  const pod = podOf("classy", "true", { spec: { runtimeClassName: at.name } });
  await at.refused(403, at.create(pod), /pod rejected: RuntimeClass .* not found/);
}

async function scheduleRuntimeClass(at: TestNamespace): Promise<void> {
  const metadata = { name: at.name };
  await at.create({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata, handler: "runc" });
  await at.create(podOf("classy", PAUSE, { spec: { runtimeClassName: at.name } }));
  const { spec } = await at.waitForPod("classy", "a node", ({ status }) => {
    return conditionOf(status, "PodScheduled")?.status === "True";
  });
  assert.equal(spec.overhead, undefined);
  await at.api.delete(`/apis/node.k8s.io/v1/runtimeclasses/${at.name}`);
}

async function initializeOverhead(at: TestNamespace): Promise<void> {
  const overhead = { podFixed: { cpu: "10m", memory: "1Mi" } };
  const metadata = { name: at.name };
  await at.create({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata, handler: "runc", overhead });
  await at.create(podOf("classy", PAUSE, { spec: { runtimeClassName: at.name } }));
  const { spec } = await at.waitForPod("classy", "a node", ({ status }) => {
    return conditionOf(status, "PodScheduled")?.status === "True";
  });
  assert.deepEqual(spec.overhead, overhead.podFixed);
  await at.api.delete(`/apis/node.k8s.io/v1/runtimeclasses/${at.name}`);
}

const LOGGED = "/dev/termination-custom-log";

async function expectTerminationMessage(at: TestNamespace, container: object, script: string, message: string) {
  await at.outputOf(podOf("ending", script, { container }));
  const { status } = await at.pod("ending");
  assert.equal(status.containerStatuses[0].state.terminated.message, message);
}

export const pods: Behaviours = {
  "Pods should be updated": updateLabels,
  "Pods should allow activeDeadlineSeconds to be updated": updateDeadline,
  "Pods should delete a collection of pods": deleteCollection,
  "Pods should get a host IP": getHostIp,
  "Pods should run through the lifecycle of Pods and PodStatus": testLifecycle,
  "Pods Extended Pods Set QOS Class should be set on Pods with matching resource requests and limits for memory and cpu":
    setQosClass,
  "Ephemeral Containers should update the ephemeral containers in an existing pod": addEphemeralContainers,
  "InitContainer should not start app containers if init containers fail on a RestartAlways pod": failInit,
  "Secrets should be consumable from pods in env vars": testSecretVariables(
    { env: [{ name: "SECRET_DATA", valueFrom: { secretKeyRef: { name: "test", key: "data-1" } } }] },
    "SECRET_DATA=value-1",
  ),
  "Secrets should be consumable via the environment": testSecretVariables(
    { envFrom: [{ secretRef: { name: "test" } }, { prefix: "p-", secretRef: { name: "test" } }] },
    "data-1=value-1",
    "p-data-1=value-1",
  ),
  "RuntimeClass should reject a Pod requesting a non-existent RuntimeClass": (at) =>
    at.refused(
      403,
      at.create(podOf("classy", "true", { spec: { runtimeClassName: at.name } })),
      /RuntimeClass .* not found/,
    ),
  "RuntimeClass should schedule a Pod requesting a RuntimeClass and initialize its Overhead": initializeOverhead,
  "RuntimeClass should reject a Pod requesting a deleted RuntimeClass": rejectDeletedRuntimeClass,
  "RuntimeClass should schedule a Pod requesting a RuntimeClass without PodOverhead": scheduleRuntimeClass,
  "Container Runtime blackbox test on terminated container should report termination message from file when pod succeeds and TerminationMessagePolicy FallbackToLogsOnError is set":
    (at) =>
      expectTerminationMessage(
        at,
        { terminationMessagePolicy: "FallbackToLogsOnError" },
        "echo a log; busybox printf OK > /dev/termination-log",
        "OK",
      ),
  "Container Runtime blackbox test on terminated container should report termination message if TerminationMessagePath is set as non-root user and at a non-default path":
    (at) =>
      expectTerminationMessage(
        at,
        { terminationMessagePath: LOGGED, securityContext: { runAsUser: 1000 } },
        `busybox printf DONE > ${LOGGED}`,
        "DONE",
      ),
};
