/** `/pods`: the pods of the sources; `/runningpods/`: those of the runtime. Both with the bytes of Go's encoder. */
import { podKind } from "../../../api/core/pod/kind.ts";
import type { HttpResponse } from "../../../http/message.ts";
import { bytesResponse, textResponse } from "../../../http/respond.ts";
import { stringify } from "../../../schema/json/encode.ts";
import { podUid } from "../../pods/pod-fields.ts";
import type { PodManager } from "../../pods/pod-manager.ts";
import { labels } from "../../runtime/observation.ts";
import { type Runtime, RuntimeError } from "../../runtime/runtime.ts";

/** The pods with their current status: static pods get theirs from no source. */
export function servePods(pods: PodManager): HttpResponse {
  return listResponse(pods.pods.map((pod) => ({ ...pod, status: pods.worker(podUid(pod))?.status ?? pod.status })));
}

interface RunningPod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  createdAt: bigint;
  readonly containers: { readonly name: string; readonly image: string }[];
}

/** Pods with a ready sandbox or a running container, newest first, with the images that the runtime was given. */
export async function serveRunningPods(runtime: Runtime, signal: AbortSignal): Promise<HttpResponse> {
  try {
    const pods = await listRunningPods(runtime, signal);
    return listResponse(
      pods.map(({ name, namespace, uid, containers }) => ({
        metadata: { name, namespace, uid },
        // Of a pod without running containers Go has no list.
        spec: containers.length === 0 ? {} : { containers },
      })),
    );
  } catch (error) {
    if (error instanceof RuntimeError) return textResponse(500, error.message);
    throw error;
  }
}

async function listRunningPods(runtime: Runtime, signal: AbortSignal): Promise<readonly RunningPod[]> {
  const [{ items = [] }, { containers = [] }] = await Promise.all([
    runtime.listPodSandbox({ filter: { state: { state: "SANDBOX_READY" } } }, signal),
    runtime.listContainers({ filter: { state: { state: "CONTAINER_RUNNING" } } }, signal),
  ]);
  const pods = new Map<string, RunningPod>();
  const find = (uid: string, name: string, namespace: string): RunningPod => {
    const pod = pods.get(uid) ?? { uid, name, namespace, createdAt: 0n, containers: [] };
    pods.set(uid, pod);
    return pod;
  };
  for (const { metadata, createdAt = 0n } of items) {
    if (metadata === undefined) continue;
    find(metadata.uid ?? "", metadata.name ?? "", metadata.namespace ?? "").createdAt = createdAt;
  }
  for (const { metadata, image, labels: all = {} } of containers) {
    if (metadata === undefined) continue;
    const pod = find(all[labels.podUid] ?? "", all[labels.podName] ?? "", all[labels.podNamespace] ?? "");
    pod.containers.push({ name: metadata.name ?? "", image: image?.image ?? "" });
  }
  return [...pods.values()].sort((a, b) => (a.createdAt > b.createdAt ? -1 : a.createdAt < b.createdAt ? 1 : 0));
}

function listResponse(pods: readonly object[]): HttpResponse {
  const items = pods.map((pod) => stringify(podKind.schema, pod, { omitTypeMeta: true })).join(",");
  // As of containers: Go has no list of no pods.
  const list = pods.length === 0 ? "null" : `[${items}]`;
  const text = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":${list}}\n`;
  return bytesResponse(200, "application/json", Buffer.from(text));
}
