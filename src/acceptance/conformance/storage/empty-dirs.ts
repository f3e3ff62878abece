/** Files in emptyDir volumes: modes, users, media; and parts of volumes mounted by subPath. */
import assert from "node:assert/strict";
import { type Behaviour, type Behaviours, podOf } from "../harness/behaviour.ts";

const NON_ROOT = 1001;

/** The user writes a file with the mode, and sees mode, content, and the file system of the volume. */
function file(user: "root" | "non-root", mode: "0644" | "0666" | "0777", medium: "default" | "tmpfs"): Behaviour {
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
function subPath(volume: object, expected: string, { over = "/test/file" } = {}): Behaviour {
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

export const emptyDirs: Behaviours = {
  "EmptyDir volumes should support (root,0644,default)": file("root", "0644", "default"),
  "EmptyDir volumes should support (root,0644,tmpfs)": file("root", "0644", "tmpfs"),
  "EmptyDir volumes should support (root,0666,default)": file("root", "0666", "default"),
  "EmptyDir volumes should support (root,0666,tmpfs)": file("root", "0666", "tmpfs"),
  "EmptyDir volumes should support (root,0777,default)": file("root", "0777", "default"),
  "EmptyDir volumes should support (root,0777,tmpfs)": file("root", "0777", "tmpfs"),
  "EmptyDir volumes should support (non-root,0644,default)": file("non-root", "0644", "default"),
  "EmptyDir volumes should support (non-root,0644,tmpfs)": file("non-root", "0644", "tmpfs"),
  "EmptyDir volumes should support (non-root,0666,default)": file("non-root", "0666", "default"),
  "EmptyDir volumes should support (non-root,0666,tmpfs)": file("non-root", "0666", "tmpfs"),
  "EmptyDir volumes should support (non-root,0777,default)": file("non-root", "0777", "default"),
  "EmptyDir volumes should support (non-root,0777,tmpfs)": file("non-root", "0777", "tmpfs"),
  "Subpath Atomic writer volumes should support subpaths with configmap pod with mountPath of existing file": subPath(
    { configMap: { name: "files", items } },
    "value of the map",
    { over: "/etc/passwd" },
  ),
  "Subpath Atomic writer volumes should support subpaths with secret pod": subPath(
    { secret: { secretName: "files", items } },
    "value of the secret",
  ),
  "Subpath Atomic writer volumes should support subpaths with downward pod": subPath(
    { downwardAPI: { items: [{ path: "dir/key", fieldRef: { fieldPath: "metadata.name" } }] } },
    "reader",
  ),
  "Subpath Atomic writer volumes should support subpaths with projected pod": subPath(
    { projected: { sources: [{ configMap: { name: "files", items } }] } },
    "value of the map",
  ),
};
