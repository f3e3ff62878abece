/** The cgroups whose figures are reported: the node's, those above pods, pods, their sandboxes and containers. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { toSlicePath } from "../cgroups/systemd-slices.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import { type CgroupSettings, cgroupName, podCgroupParent } from "../pods/resources/cgroup-names.ts";
import type { Observation, ObservedContainer, ObservedSandbox } from "../runtime/observation.ts";
import type { CgroupReader } from "./cgroup-reader.ts";

/** The part of a pod's worker that has its containers. */
export interface StatsPod {
  readonly pod: Pod;
  readonly observation: Observation;
}

export interface ContainerTarget {
  readonly path: string;
  readonly container: ObservedContainer;
}

export interface PodTarget {
  readonly path: string;
  readonly pod: Pod;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Undefined while the pod has no running sandbox. */
  readonly sandbox: { readonly path: string; readonly sandbox: ObservedSandbox } | undefined;
  readonly containers: readonly ContainerTarget[];
}

/** The cgroup of the node, of all pods, and of the QoS classes. */
export function listNodeCgroups(settings: CgroupSettings): readonly string[] {
  const classes = (["Guaranteed", "BestEffort", "Burstable"] as const).map((qos) =>
    toPath(cgroupName("", qos, settings)),
  );
  return ["/", ...(settings.cgroupsPerQos ? classes : [])];
}

/** The cgroup of all pods. */
export function podsCgroup(settings: CgroupSettings): string {
  return toPath(cgroupName("", "Guaranteed", settings));
}

/** Pods with a cgroup; those of terminated pods are removed. */
export function listPodTargets(
  pods: Iterable<StatsPod>,
  settings: CgroupSettings,
  cgroups: Pick<CgroupReader, "listChildren">,
): readonly PodTarget[] {
  if (!settings.cgroupsPerQos) return [];
  return [...pods].flatMap(({ pod, observation }) => {
    const path = toPath(podCgroupParent(pod, settings));
    const children = cgroups.listChildren(path);
    if (children.length === 0) return [];
    const find = (id: string): string | undefined => {
      // Runtimes name it after the id: `<id>`, `cri-containerd-<id>.scope`, `crio-<id>`.
      const child = children.find((name) => name.includes(id));
      return child === undefined ? undefined : `${path}/${child}`;
    };
    const sandbox = observation.sandboxes.find(({ ready }) => ready);
    const sandboxPath = sandbox && find(sandbox.id);
    return [
      {
        path,
        pod,
        namespace: podNamespace(pod),
        name: podName(pod),
        uid: podUid(pod),
        sandbox: sandbox && sandboxPath !== undefined ? { path: sandboxPath, sandbox } : undefined,
        containers: observation.containers.flatMap((container) => {
          const found = container.state === "running" ? find(container.id) : undefined;
          return found === undefined ? [] : [{ path: found, container }];
        }),
      },
    ];
  });
}

/** `kubepods-burstable.slice` → `/kubepods.slice/kubepods-burstable.slice` */
function toPath(parent: string): string {
  return parent.endsWith(".slice") && !parent.startsWith("/") ? toSlicePath(parent) : parent;
}
