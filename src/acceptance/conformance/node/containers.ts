/** What containers see and may do: environment, /etc/hosts, security context, subPathExpr. */
import assert from "node:assert/strict";
import {
  type Behaviour,
  type Behaviours,
  containerOf,
  PAUSE,
  podOf,
  type TestNamespace,
} from "../harness/behaviour.ts";
import { bytesOf, coresOf } from "../storage/downward-volumes.ts";

async function defaultLimits(at: TestNamespace): Promise<void> {
  const env = ["cpu", "memory"].map((resource) => ({
    name: `${resource.toUpperCase()}_LIMIT`,
    valueFrom: { resourceFieldRef: { resource: `limits.${resource}` } },
  }));
  const output = await at.outputOf(podOf("reader", "echo $CPU_LIMIT $MEMORY_LIMIT", { container: { env } }));
  const { allocatable } = (await at.node()).status;
  assert.equal(output, `${Math.ceil(coresOf(allocatable.cpu))} ${bytesOf(allocatable.memory)}\n`);
}

const MANAGED = /^# Kubernetes-managed hosts file/;

async function manageHosts(at: TestNamespace): Promise<void> {
  const mount = (mountPath: string) => ({ volumeMounts: [{ name: "hosts", mountPath }] });
  const volumes = [{ name: "hosts", hostPath: { path: "/etc/hosts", type: "File" } }];
  const containers = [
    containerOf(PAUSE, mount("/etc/hosts-original"), "busybox-1"),
    containerOf(PAUSE, mount("/etc/hosts-original"), "busybox-2"),
    containerOf(PAUSE, mount("/etc/hosts"), "busybox-3"),
  ];
  await at.runPod(podOf("test-pod", "", { spec: { containers, volumes } }));
  const hosts = (pod: string, container: string) => at.exec(pod, "cat /etc/hosts", container);
  const { status } = await at.pod("test-pod");
  for (const name of ["busybox-1", "busybox-2"]) {
    assert.match(await hosts("test-pod", name), MANAGED);
    assert.match(await hosts("test-pod", name), new RegExp(`^${status.podIP}\ttest-pod$`, "m"));
  }
  const original = await at.exec("test-pod", "cat /etc/hosts-original", "busybox-1");
  assert.equal(await hosts("test-pod", "busybox-3"), original);
  assert.doesNotMatch(original, MANAGED);
  const spec = { hostNetwork: true, containers: containers.slice(0, 2), volumes };
  await at.runPod(podOf("test-host-network-pod", "", { spec }));
  const ofNode = await hosts("test-host-network-pod", "busybox-1");
  assert.doesNotMatch(ofNode, /test-host-network-pod/);
  assert.ok(ofNode.includes(original), "the node's entries");
}

async function runUnprivileged(at: TestNamespace): Promise<void> {
  // Only a privileged container may add an interface.
  const script = "ip link add dummy0 type dummy || true";
  const container = { securityContext: { privileged: false } };
  assert.match(await at.outputOf(podOf("unprivileged", script, { container })), /Operation not permitted/);
}

async function writeRootFilesystem(at: TestNamespace): Promise<void> {
  const container = { securityContext: { readOnlyRootFilesystem: false } };
  assert.equal(await at.outputOf(podOf("writable", "echo written > /file && cat /file", { container })), "written\n");
}

const workdir = { name: "workdir", emptyDir: {} };

/** The container never runs, and an event says why. */
function failSubPath(value: string, message: RegExp): Behaviour {
  return async (at) => {
    const pod = podOf("expanded", "true", {
      container: {
        env: [{ name: "POD_NAME", value }],
        volumeMounts: [{ name: "workdir", mountPath: "/logscontainer", subPathExpr: "$(POD_NAME)" }],
      },
      spec: { volumes: [workdir] },
    });
    await at.create(pod);
    const { status } = await at.waitForPod("expanded", "a waiting container", ({ status }) => {
      return status.containerStatuses?.[0]?.state.waiting?.reason === "CreateContainerConfigError";
    });
    assert.match(status.containerStatuses[0].state.waiting.message, message);
    assert.equal(status.phase, "Pending");
  };
}

const annotated = {
  env: [{ name: "ANNOTATION", valueFrom: { fieldRef: { fieldPath: "metadata.annotations['mysubpath']" } } }],
};

async function writeSubPath(at: TestNamespace): Promise<void> {
  const container = {
    ...annotated,
    volumeMounts: [
      { name: "workdir", mountPath: "/subpath_mount", subPathExpr: "$(ANNOTATION)/inner" },
      { name: "workdir", mountPath: "/volume_mount" },
    ],
  };
  const pod = podOf("expanded", PAUSE, {
    annotations: { mysubpath: "mypath" },
    container,
    spec: { volumes: [workdir] },
  });
  await at.runPod(pod);
  await at.exec("expanded", "echo written > /subpath_mount/test.log");
  assert.equal(await at.exec("expanded", "cat /volume_mount/mypath/inner/test.log"), "written\n");
  await at.api.patch(at.path("pods/expanded"), { metadata: { annotations: { mysubpath: "mynewpath" } } });
  assert.equal(await at.exec("expanded", "cat /subpath_mount/test.log"), "written\n");
  await at.api.delete(at.path("pods/expanded"));
  await at.api.waitGone(at.path("pods/expanded"));
}

async function modifySubPath(at: TestNamespace): Promise<void> {
  const container = {
    ...annotated,
    volumeMounts: [
      { name: "workdir", mountPath: "/subpath_mount", subPathExpr: "$(ANNOTATION)" },
      { name: "workdir", mountPath: "/volume_mount" },
    ],
  };
  const pod = podOf("expanded", PAUSE, {
    annotations: { mysubpath: "/absolute" },
    container,
    spec: { restartPolicy: "Always", volumes: [workdir] },
  });
  await at.create(pod);
  await at.waitForPod("expanded", "a waiting container", ({ status }) => {
    return status.containerStatuses?.[0]?.state.waiting?.reason === "CreateContainerConfigError";
  });
  await at.api.patch(at.path("pods/expanded"), { metadata: { annotations: { mysubpath: "mypath" } } });
  await at.waitReady("expanded", 240_000);
  assert.match(await at.exec("expanded", "ls /volume_mount"), /mypath/);
}

export const containers: Behaviours = {
  "Downward API should provide default limits.cpu/memory from node allocatable": defaultLimits,
  "KubeletManagedEtcHosts should test kubelet managed /etc/hosts file": manageHosts,
  "Security Context When creating a pod with privileged should run the container as unprivileged when false":
    runUnprivileged,
  "Security Context When creating a pod with readOnlyRootFilesystem should run the container with writable rootfs when readOnlyRootFilesystem=false":
    writeRootFilesystem,
  "Variable Expansion should fail substituting values in a volume subpath with absolute path": failSubPath(
    "/tmp",
    /must not be an absolute path/,
  ),
  "Variable Expansion should fail substituting values in a volume subpath with backticks": failSubPath(
    "..",
    /must not contain '\.\.'/,
  ),
  "Variable Expansion should succeed in writing subpaths in container": writeSubPath,
  "Variable Expansion should verify that a failing subpath expansion can be modified during the lifecycle of a container":
    modifySubPath,
};
