/** Environment variables, commands, users and limits of containers. */
import assert from "node:assert/strict";
import {
  type Behaviour,
  type Behaviours,
  containerOf,
  isFinished,
  PAUSE,
  podOf,
  type TestNamespace,
} from "../harness/behaviour.ts";

/** The environment of a container without a shell, which would drop some names. */
async function environmentOf(at: TestNamespace, container: object, spec: object = {}): Promise<readonly string[]> {
  const output = await at.outputOf(podOf("reader", "", { container: { command: ["env"], ...container }, spec }));
  return output.split("\n");
}

const fieldVariable = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

function testFieldVariables(
  paths: Readonly<Record<string, string>>,
  expected: (pod: { metadata: Record<string, string>; status: Record<string, string> }, at: TestNamespace) => object,
): Behaviour {
  return async (at) => {
    const env = Object.entries(paths).map(([name, path]) => fieldVariable(name, path));
    const lines = await environmentOf(at, { env });
    for (const [name, value] of Object.entries(expected(await at.pod("reader"), at))) {
      assert.ok(lines.includes(`${name}=${value}`), `${name}=${value} among ${lines}`);
    }
  };
}

async function testLimitVariables(at: TestNamespace): Promise<void> {
  const variable = (name: string, resource: string) => ({ name, valueFrom: { resourceFieldRef: { resource } } });
  const lines = await environmentOf(at, {
    resources: { requests: { cpu: "250m", memory: "32Mi" }, limits: { cpu: "1250m", memory: "64Mi" } },
    env: [
      variable("CPU_LIMIT", "limits.cpu"),
      variable("MEMORY_LIMIT", "limits.memory"),
      variable("CPU_REQUEST", "requests.cpu"),
      variable("MEMORY_REQUEST", "requests.memory"),
    ],
  });
  for (const line of ["CPU_LIMIT=2", "MEMORY_LIMIT=67108864", "CPU_REQUEST=1", "MEMORY_REQUEST=33554432"]) {
    assert.ok(lines.includes(line), line);
  }
}

const configMap = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "test" },
  data: { "data-1": "value-1", "data-2": "value-2" },
};

function testConfigMapVariables(container: object, ...expected: readonly string[]): Behaviour {
  return async (at) => {
    await at.create(configMap);
    const lines = await environmentOf(at, container);
    for (const line of expected) assert.ok(lines.includes(line), `${line} among ${lines}`);
  };
}

function rejectEmptyKey(kind: "ConfigMap" | "Secret"): Behaviour {
  return async (at) => {
    const data = { "": kind === "Secret" ? "dmFsdWU=" : "value" };
    const object = { apiVersion: "v1", kind, metadata: { name: "empty-key" }, data };
    await at.refused(422, at.create(object), /data\[\]: Invalid value/);
  };
}

const output = (container: object, expected: string): Behaviour => {
  return async (at) => {
    assert.equal(await at.outputOf(podOf("printer", "", { container })), expected);
  };
};

async function compose(at: TestNamespace): Promise<void> {
  const lines = await environmentOf(at, {
    env: [
      { name: "FOO", value: "foo-value" },
      { name: "BAR", value: "bar-value" },
      { name: "FOOBAR", value: "$(FOO);;$(BAR)" },
    ],
  });
  assert.ok(lines.includes("FOOBAR=foo-value;;bar-value"), `${lines}`);
}

async function expandSubPath(at: TestNamespace): Promise<void> {
  const container = {
    command: ["sh", "-c", "echo written > /logs/file && busybox find /volume -type f"],
    env: [{ name: "POD_NAME", value: "foo" }],
    volumeMounts: [
      { name: "v", mountPath: "/logs", subPathExpr: "$(POD_NAME)" },
      { name: "v", mountPath: "/volume" },
    ],
  };
  const pod = podOf("expanded", "", { container, spec: { volumes: [{ name: "v", emptyDir: {} }] } });
  assert.equal(await at.outputOf(pod), "/volume/foo/file\n");
}

async function testServiceVariables(at: TestNamespace): Promise<void> {
  const ports = [{ port: 8765, targetPort: 8080 }];
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "fooservice" }, spec: { ports } };
  const { clusterIP } = (await at.create(service)).spec;
  await at.runPod(podOf("settled", PAUSE));
  const lines = await environmentOf(at, {});
  for (const line of [
    `FOOSERVICE_SERVICE_HOST=${clusterIP}`,
    "FOOSERVICE_SERVICE_PORT=8765",
    `FOOSERVICE_PORT=tcp://${clusterIP}:8765`,
    "FOOSERVICE_PORT_8765_TCP_PORT=8765",
    "FOOSERVICE_PORT_8765_TCP_PROTO=tcp",
    `FOOSERVICE_PORT_8765_TCP=tcp://${clusterIP}:8765`,
    `FOOSERVICE_PORT_8765_TCP_ADDR=${clusterIP}`,
  ]) {
    assert.ok(lines.includes(line), `${line} among ${lines}`);
  }
}

/** `id` prints user and groups. */
function testIdentity(container: object, pod: object, expected: RegExp): Behaviour {
  return async (at) => {
    const made = podOf("identified", "id", { container, spec: pod });
    assert.match(await at.outputOf(made), expected);
  };
}

async function keepPrivileges(at: TestNamespace): Promise<void> {
  const securityContext = { runAsUser: 1000, allowPrivilegeEscalation: false };
  const script = "id -u; busybox grep NoNewPrivs /proc/self/status";
  assert.match(
    await at.outputOf(podOf("unprivileged", script, { container: { securityContext } })),
    /^1000\nNoNewPrivs:\t1\n$/,
  );
}

async function setSysctl(at: TestNamespace): Promise<void> {
  const sysctls = [{ name: "kernel.shm_rmid_forced", value: "1" }];
  const pod = podOf("tuned", "cat /proc/sys/kernel/shm_rmid_forced", { spec: { securityContext: { sysctls } } });
  assert.equal(await at.outputOf(pod), "1\n");
}

async function rejectSysctls(at: TestNamespace): Promise<void> {
  const sysctls = ["foo-", "kernel.shmmax", "safe-and-unsafe", "bar.."].map((name) => ({ name, value: "1" }));
  const pod = podOf("tuned", "true", { spec: { securityContext: { sysctls } } });
  await at.refused(
    422,
    at.create(pod),
    /sysctls\[0\]\.name: Invalid value: "foo-".*sysctls\[3\]\.name: Invalid value/s,
  );
}

async function printOutput(at: TestNamespace): Promise<void> {
  const text = await at.outputOf(podOf("printer", "echo Hello World; echo and errors >&2"));
  assert.deepEqual(text.trim().split("\n").sort(), ["Hello World", "and errors"]);
}

async function failAlways(at: TestNamespace): Promise<void> {
  await at.create(podOf("failing", "false", { spec: { restartPolicy: "Never" } }));
  const { status } = await at.waitForPod("failing", "the end of the pod", isFinished);
  assert.equal(status.containerStatuses.length, 1);
  const { terminated } = status.containerStatuses[0].state;
  assert.equal(terminated.exitCode, 1);
  assert.equal(terminated.reason, "Error");
}

async function deleteFailing(at: TestNamespace): Promise<void> {
  await at.create(podOf("failing", "false", { spec: { restartPolicy: "Always" } }));
  await at.waitForPod("failing", "a restart", ({ status }) => status.containerStatuses?.[0]?.restartCount > 0);
  await at.api.delete(at.path("pods/failing"));
  await at.api.waitGone(at.path("pods/failing"));
}

async function writeAliases(at: TestNamespace): Promise<void> {
  const hostAliases = [{ ip: "123.45.67.89", hostnames: ["foo", "bar"] }];
  const text = await at.outputOf(podOf("aliased", "cat /etc/hosts", { spec: { hostAliases } }));
  assert.match(text, /^123\.45\.67\.89\tfoo\tbar$/m);
}

async function refuseWrites(at: TestNamespace): Promise<void> {
  const securityContext = { readOnlyRootFilesystem: true };
  const pod = podOf("read-only", "echo test > /file || true; busybox test ! -e /file && echo absent", {
    container: { securityContext },
  });
  assert.match(await at.outputOf(pod), /Read-only file system[\s\S]*absent\n$/);
}

async function startEphemeral(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("debugged", PAUSE));
  const container = containerOf(
    "echo polo; read line; echo got $line; sleep 3600",
    { stdin: true, tty: true, targetContainerName: "c" },
    "debugger",
  );
  const path = at.path("pods/debugged/ephemeralcontainers");
  await at.api.patch(path, { spec: { ephemeralContainers: [container] } }, "strategic");
  await at.waitForPod("debugged", "a running ephemeral container", ({ status }) => {
    return status.ephemeralContainerStatuses?.[0]?.state.running;
  });
  await at.waitForLog("debugged", /polo/, { container: "debugger" });
  assert.match(await at.exec("debugged", "ps", "debugger"), /sleep 3600/);
}

const EXEC_PROTOCOL = "v4.channel.k8s.io";

/** Each frame of exec begins with the number of its channel. */
async function execBySocket(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("remote", PAUSE));
  const query = ["echo", "remote execution test"].map((word) => `command=${encodeURIComponent(word)}`).join("&");
  const path = at.path(`pods/remote/exec?container=c&stdout=1&stderr=1&${query}`);
  const frames = await at.api.readSocket(path, EXEC_PROTOCOL);
  const channel = (number: number): string =>
    Buffer.concat(frames.filter(([first]) => first === number).map((frame) => frame.subarray(1))).toString();
  assert.equal(channel(1), "remote execution test\n");
  assert.equal(channel(2), "");
  assert.equal(JSON.parse(channel(3)).status, "Success");
}

async function logBySocket(at: TestNamespace): Promise<void> {
  await at.outputOf(podOf("logged", "echo container is alive"));
  const frames = await at.api.readSocket(at.path("pods/logged/log?container=c"), "binary.k8s.io");
  assert.equal(Buffer.concat(frames).toString(), "container is alive\n");
}

export const variables: Behaviours = {
  "Pods should support remote command execution over websockets": execBySocket,
  "Pods should support retrieving logs from the container over websockets": logBySocket,
  "ConfigMap should be consumable via environment variable": testConfigMapVariables(
    { env: [{ name: "CONFIG_DATA_1", valueFrom: { configMapKeyRef: { name: "test", key: "data-1" } } }] },
    "CONFIG_DATA_1=value-1",
  ),
  "ConfigMap should be consumable via the environment": testConfigMapVariables(
    { envFrom: [{ configMapRef: { name: "test" } }, { prefix: "p-", configMapRef: { name: "test" } }] },
    "data-1=value-1",
    "data-2=value-2",
    "p-data-1=value-1",
    "p-data-2=value-2",
  ),
  "ConfigMap should fail to create ConfigMap with empty key": rejectEmptyKey("ConfigMap"),
  "Secrets should fail to create secret due to empty secret key": rejectEmptyKey("Secret"),
  "Downward API should provide container's limits.cpu/memory and requests.cpu/memory as env vars": testLimitVariables,
  "Downward API should provide host IP as an env var": testFieldVariables(
    { HOST_IP: "status.hostIP" },
    ({ status }) => ({
      HOST_IP: status.hostIP,
    }),
  ),
  "Downward API should provide hostIPs as an env var": testFieldVariables(
    { HOST_IPS: "status.hostIPs" },
    ({ status }) => ({
      HOST_IPS: status.hostIP,
    }),
  ),
  "Downward API should provide pod UID as env vars": testFieldVariables(
    { POD_UID: "metadata.uid" },
    ({ metadata }) => ({
      POD_UID: metadata.uid,
    }),
  ),
  "Downward API should provide pod name, namespace and IP address as env vars": testFieldVariables(
    { POD_NAME: "metadata.name", POD_NAMESPACE: "metadata.namespace", POD_IP: "status.podIP" },
    ({ status }, at) => ({ POD_NAME: "reader", POD_NAMESPACE: at.name, POD_IP: status.podIP }),
  ),
  "Ephemeral Containers will start an ephemeral container in an existing pod": startEphemeral,
  "Kubelet when scheduling a busybox command in a pod should print the output to logs": printOutput,
  "Kubelet when scheduling a busybox command that always fails in a pod should be possible to delete": deleteFailing,
  "Kubelet when scheduling a busybox command that always fails in a pod should have an terminated reason": failAlways,
  "Kubelet when scheduling a read only busybox container should not write to root filesystem": refuseWrites,
  "Kubelet when scheduling an agnhost Pod with hostAliases should write entries to /etc/hosts": writeAliases,
  "Pods should contain environment variables for services": testServiceVariables,
  "Security Context When creating a container with runAsUser should run the container with uid 65534": testIdentity(
    { securityContext: { runAsUser: 65534 } },
    {},
    /^uid=65534/,
  ),
  "Security Context should support container.SecurityContext.RunAsUser And container.SecurityContext.RunAsGroup":
    testIdentity({ securityContext: { runAsUser: 1001, runAsGroup: 2002 } }, {}, /^uid=1001 gid=2002/),
  "Security Context should support pod.Spec.SecurityContext.RunAsUser And pod.Spec.SecurityContext.RunAsGroup":
    testIdentity({}, { securityContext: { runAsUser: 1001, runAsGroup: 2002 } }, /^uid=1001 gid=2002/),
  "Security Context when creating containers with AllowPrivilegeEscalation should not allow privilege escalation when false":
    keepPrivileges,
  "Sysctls should support sysctls": setSysctl,
  "Sysctls should reject invalid sysctls": rejectSysctls,
  "Variable Expansion should allow composing env vars into new env vars": compose,
  "Variable Expansion should allow substituting values in a container's args": output(
    {
      command: ["sh", "-c"],
      args: ["TEST_VAR=wrong; echo '$(TEST_VAR)'"],
      env: [{ name: "TEST_VAR", value: "test-value" }],
    },
    "test-value\n",
  ),
  "Variable Expansion should allow substituting values in a container's command": output(
    { command: ["sh", "-c", "TEST_VAR=wrong; echo '$(TEST_VAR)'"], env: [{ name: "TEST_VAR", value: "test-value" }] },
    "test-value\n",
  ),
  "Variable Expansion should allow substituting values in a volume subpath": expandSubPath,
};
