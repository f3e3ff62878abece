/** Containers that run this machine's Node.js, which the example image does not have, from directories of the host. */
import { join } from "node:path";
import { root } from "../../cluster/cluster.ts";
import { exampleImage } from "../../cluster/example-image.ts";

const mounts = [
  ["node", process.execPath, "/bin/node"],
  ["libraries", "/usr/lib", "/lib"],
  ["loader", "/usr/lib64", "/lib64"],
  ["programs", join(root, "src/acceptance"), "/programs"],
] as const;

const volumeMounts = mounts.map(([name, , mountPath]) => ({ name, mountPath, readOnly: true }));

/** The volumes of pods with such containers. */
export const nodeVolumes = mounts.map(([name, path]) => ({ name, hostPath: { path } }));

/** `program` is relative to src/acceptance. */
export function nodeContainer(program: string, args: readonly string[], more: object = {}, name = "c") {
  return {
    name,
    image: exampleImage,
    imagePullPolicy: "IfNotPresent",
    command: ["/bin/node", `/programs/${program}`, ...args],
    volumeMounts,
    ...more,
  };
}

export interface ServerOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly spec?: object;
  readonly container?: object;
}

/** `spec` of a pod that runs net-server.ts: HTTP at port 8080, UDP at 8081, TCP at 8082. */
export function serverSpec({ args = [], spec, container }: ServerOptions = {}) {
  return {
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    containers: [
      nodeContainer("conformance/harness/net-server.ts", args, {
        readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1, failureThreshold: 60 },
        ...container,
      }),
    ],
    volumes: nodeVolumes,
    ...spec,
  };
}

export function serverPod(name: string, options: ServerOptions = {}) {
  const { labels = { app: name } } = options;
  return { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec: serverSpec(options) };
}
