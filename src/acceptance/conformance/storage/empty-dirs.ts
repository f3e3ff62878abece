/** Files in emptyDir volumes: modes, users, media; and parts of volumes mounted by subPath. */
import assert from "node:assert/strict";
import { type Behaviour, type Behaviours, containerOf, podOf, type TestNamespace } from "../harness/behaviour.ts";

const NON_ROOT = 1001;

/** The user writes a file with the mode, and sees mode, content, and the file system of the volume. */
function testFile(user: "root" | "non-root", mode: "0644" | "0666" | "0777", medium: "default" | "tmpfs"): Behaviour {
  return async (at) => {
    const script = [
      "echo new file > /v/file",
      `busybox chmod ${mode} /v/file`,
      "busybox stat -c '%A %u' /v/file",
      "cat /v/file",
      "busybox grep -q '^tmpfs /v tmpfs ' /proc/mounts && echo tmpfs || echo default",
    ].join(" && ");
    const pod = podOf("writer", script, {
      container: { volumeMounts: [{ name: "v", mountPath: "/v" }] },
      spec: {
        volumes: [{ name: "v", emptyDir: medium === "tmpfs" ? { medium: "Memory" } : {} }],
        ...(user === "root" ? {} : { securityContext: { runAsUser: NON_ROOT } }),
      },
    });
    const letters = { "0644": "-rw-r--r--", "0666": "-rw-rw-rw-", "0777": "-rwxrwxrwx" }[mode];
    const expected = `${letters} ${user === "root" ? 0 : NON_ROOT}\nnew file\n${medium}\n`;
    assert.equal(await at.outputOf(pod), expected);
  };
}

const files = { apiVersion: "v1", metadata: { name: "files" } };
const configMap = { ...files, kind: "ConfigMap", data: { key: "value of the map" } };
const secret = { ...files, kind: "Secret", stringData: { key: "value of the secret" } };

/** A container reads one file of the volume, mounted by its subPath; `over` is a file that the image has. */
function testSubPath(volume: object, expected: string, { over = "/test/file" } = {}): Behaviour {
  return async (at) => {
    await at.create(configMap);
    await at.create(secret);
    const pod = podOf("reader", `cat ${over}`, {
      container: { volumeMounts: [{ name: "v", mountPath: over, subPath: "dir/key" }] },
      spec: { volumes: [{ name: "v", ...volume }] },
    });
    assert.equal((await at.outputOf(pod)).trim(), expected);
  };
}

const items = [{ key: "key", path: "dir/key" }];

/** The permissions of the volume itself; tmpfs has the sticky bit as well. */
function testDirectory(medium: "default" | "tmpfs"): Behaviour {
  return async (at) => {
    const script =
      "busybox stat -c %a /v | busybox tail -c 4 && (busybox grep -q '^tmpfs /v tmpfs ' /proc/mounts && echo tmpfs || echo default)";
    const pod = podOf("reader", script, {
      container: { volumeMounts: [{ name: "v", mountPath: "/v" }] },
      spec: { volumes: [{ name: "v", emptyDir: medium === "tmpfs" ? { medium: "Memory" } : {} }] },
    });
    assert.equal(await at.outputOf(pod), `777\n${medium}\n`);
  };
}

/** The main container waits for the file of the other one. */
async function share(at: TestNamespace): Promise<void> {
  const mounts = { volumeMounts: [{ name: "v", mountPath: "/v" }] };
  const containers = [
    containerOf("while [ ! -e /v/data ]; do sleep 1; done; cat /v/data; sleep 3600", mounts, "main"),
    containerOf("echo hello from the other > /v/.data && busybox mv /v/.data /v/data; sleep 3600", mounts, "sub"),
  ];
  await at.runPod(podOf("shared", "", { spec: { containers, volumes: [{ name: "v", emptyDir: {} }] } }));
  await at.waitForLog("shared", /^hello from the other$/m, { container: "main" });
  assert.equal(await at.exec("shared", "cat /v/data", "main"), "hello from the other\n");
}

export const emptyDirs: Behaviours = {
  "EmptyDir volumes pod should support shared volumes between containers": share,
  "EmptyDir volumes volume on default medium should have the correct mode": testDirectory("default"),
  "EmptyDir volumes volume on tmpfs should have the correct mode": testDirectory("tmpfs"),
  "Subpath Atomic writer volumes should support subpaths with configmap pod": testSubPath(
    { configMap: { name: "files", items } },
    "value of the map",
  ),
  "EmptyDir volumes should support (root,0644,default)": testFile("root", "0644", "default"),
  "EmptyDir volumes should support (root,0644,tmpfs)": testFile("root", "0644", "tmpfs"),
  "EmptyDir volumes should support (root,0666,default)": testFile("root", "0666", "default"),
  "EmptyDir volumes should support (root,0666,tmpfs)": testFile("root", "0666", "tmpfs"),
  "EmptyDir volumes should support (root,0777,default)": testFile("root", "0777", "default"),
  "EmptyDir volumes should support (root,0777,tmpfs)": testFile("root", "0777", "tmpfs"),
  "EmptyDir volumes should support (non-root,0644,default)": testFile("non-root", "0644", "default"),
  "EmptyDir volumes should support (non-root,0644,tmpfs)": testFile("non-root", "0644", "tmpfs"),
  "EmptyDir volumes should support (non-root,0666,default)": testFile("non-root", "0666", "default"),
  "EmptyDir volumes should support (non-root,0666,tmpfs)": testFile("non-root", "0666", "tmpfs"),
  "EmptyDir volumes should support (non-root,0777,default)": testFile("non-root", "0777", "default"),
  "EmptyDir volumes should support (non-root,0777,tmpfs)": testFile("non-root", "0777", "tmpfs"),
  "Subpath Atomic writer volumes should support subpaths with configmap pod with mountPath of existing file":
    testSubPath({ configMap: { name: "files", items } }, "value of the map", { over: "/etc/passwd" }),
  "Subpath Atomic writer volumes should support subpaths with secret pod": testSubPath(
    { secret: { secretName: "files", items } },
    "value of the secret",
  ),
  "Subpath Atomic writer volumes should support subpaths with downward pod": testSubPath(
    { downwardAPI: { items: [{ path: "dir/key", fieldRef: { fieldPath: "metadata.name" } }] } },
    "reader",
  ),
  "Subpath Atomic writer volumes should support subpaths with projected pod": testSubPath(
    { projected: { sources: [{ configMap: { name: "files", items } }] } },
    "value of the map",
  ),
};
