/** Paths of a pod's files, below two roots, in Kubernetes' layout. */
import { join } from "node:path";
import type { Pod } from "../../api/core/pod/schema.ts";
import { podName, podNamespace, podUid } from "./pod-fields.ts";

export interface Directories {
  readonly rootDir: string;
  readonly podLogsDir: string;
  /** Of links to the logs of containers; undefined: there are none. */
  readonly containerLogsDir?: string;
}

export function podsDir(at: Directories): string {
  return join(at.rootDir, "pods");
}

export function podDir(at: Directories, uid: string): string {
  return join(podsDir(at), uid);
}

export function volumeDir(at: Directories, uid: string, plugin: string, volume: string): string {
  return join(podDir(at, uid), "volumes", `kubernetes.io~${plugin}`, volume);
}

export function containerDir(at: Directories, uid: string, container: string): string {
  return join(podDir(at, uid), "containers", container);
}

export function hostsFile(at: Directories, uid: string): string {
  return join(podDir(at, uid), "etc-hosts");
}

/** `/var/log/pods/<namespace>_<name>_<uid>`; the log of a run is `<container>/<restart count>.log` in it. */
export function podLogDir(at: Directories, pod: Pod): string {
  return join(at.podLogsDir, `${podNamespace(pod)}_${podName(pod)}_${podUid(pod)}`);
}

export function logPath(container: string, restartCount: number): string {
  return `${container}/${restartCount}.log`;
}
