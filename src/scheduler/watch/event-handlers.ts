/** Keeps the cache and the queue up to date with the cluster. */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import type { Informer } from "../../client/informer/informer.ts";
import type { ClusterCache } from "../cache/cluster-cache.ts";
import type { Nominator } from "../cache/nominator.ts";
import { isAssigned, isTerminated, PodInfo, uidOf } from "../cache/pod-info.ts";
import type { EventResource } from "../framework/cluster-event.ts";
import type { SchedulingQueue } from "../queue/scheduling-queue.ts";
import type { ClusterInformers } from "./cluster-informers.ts";
import { nodeChanges, podChanges } from "./pod-changes.ts";

export interface EventHandlerDeps {
  readonly cache: ClusterCache;
  readonly queue: SchedulingQueue;
  readonly nominator: Nominator;
  /** Whether a profile of this scheduler has the name. */
  readonly isResponsible: (schedulerName: string | undefined) => boolean;
  /** Called when a volume or claim changed, or a pod went. */
  readonly volumeChanged: () => void;
}

export class EventHandlers {
  readonly #deps: EventHandlerDeps;

  constructor(deps: EventHandlerDeps) {
    this.#deps = deps;
  }

  /** All kinds but pods. Returns a function to stop. */
  subscribe(informers: ClusterInformers): () => void {
    const { volumeChanged } = this.#deps;
    const stops = [
      informers.nodes.subscribe({
        put: (node, before) => this.nodeChanged(node, before),
        delete: (node) => this.nodeDeleted(node),
      }),
      this.#forward(informers.volumes, "PersistentVolume", volumeChanged),
      this.#forward(informers.claims, "PersistentVolumeClaim", volumeChanged),
      this.#forward(informers.storageClasses, "StorageClass"),
      this.#forward(informers.csiNodes, "CSINode"),
      this.#forward(informers.csiDrivers, "CSIDriver"),
      this.#forward(informers.storageCapacities, "CSIStorageCapacity"),
      this.#forward(informers.attachments, "VolumeAttachment"),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }

  subscribePods(pods: Informer<Pod>): () => void {
    return pods.subscribe({
      put: (pod, before) => {
        if (before !== undefined && uidOf(before) !== uidOf(pod)) this.podDeleted(before);
        this.podChanged(pod, before !== undefined && uidOf(before) === uidOf(pod) ? before : undefined);
      },
      delete: (pod) => this.podDeleted(pod),
    });
  }

  podChanged(pod: Pod, before: Pod | undefined): void {
    const wasAssigned = before !== undefined && this.#isOnNode(before);
    if (this.#isOnNode(pod)) {
      if (wasAssigned) this.#assignedPodChanged(pod, before);
      else this.#podAssigned(pod);
      return;
    }
    if (wasAssigned) this.#podLeftNode(before);
    const wasWaiting = before !== undefined && this.#isWaiting(before);
    if (this.#isWaiting(pod)) {
      if (wasWaiting) this.#waitingPodChanged(pod, before);
      else this.#podArrived(pod);
    } else if (wasWaiting) {
      this.#waitingPodLeft(before);
    }
  }

  podDeleted(pod: Pod): void {
    if (this.#isOnNode(pod)) this.#podLeftNode(pod);
    else if (this.#isWaiting(pod)) this.#waitingPodLeft(pod);
    this.#deps.volumeChanged();
  }

  nodeChanged(node: Node, before: Node | undefined): void {
    const { cache, queue } = this.#deps;
    cache.putNode(node);
    if (before === undefined) queue.move({ resource: "Node", action: "Add", before: undefined, after: node });
    else for (const event of nodeChanges(before, node)) queue.move(event);
  }

  nodeDeleted(node: Node): void {
    this.#deps.cache.deleteNode(node.metadata?.name ?? "");
    this.#deps.queue.move({ resource: "Node", action: "Delete", before: node, after: undefined });
  }

  #podAssigned(pod: Pod): void {
    const { cache, queue, nominator } = this.#deps;
    cache.putPod(pod);
    queue.delete(uidOf(pod));
    nominator.delete(uidOf(pod));
    queue.move({ resource: "AssignedPod", action: "Add", before: undefined, after: pod });
  }

  #assignedPodChanged(pod: Pod, before: Pod): void {
    this.#deps.cache.putPod(pod);
    for (const event of podChanges(before, pod)) this.#deps.queue.move(event);
  }

  #podLeftNode(pod: Pod): void {
    this.#deps.cache.deletePod(uidOf(pod));
    this.#deps.queue.move({ resource: "AssignedPod", action: "Delete", before: pod, after: undefined });
  }

  #podArrived(pod: Pod): void {
    const nominated = pod.status?.nominatedNodeName ?? "";
    if (nominated !== "") this.#deps.nominator.nominate(new PodInfo(pod), nominated);
    this.#deps.queue.add(pod);
  }

  #waitingPodChanged(pod: Pod, before: Pod): void {
    const { cache, queue, nominator } = this.#deps;
    if (cache.isAssumed(pod)) return;
    const [old = "", next = ""] = [before.status?.nominatedNodeName, pod.status?.nominatedNodeName];
    if (old !== next) nominator.nominate(new PodInfo(pod), next);
    else nominator.update(new PodInfo(pod));
    queue.update(pod, podChanges(before, pod));
    if (old !== "" && old !== next) this.#nominationEnded(before);
  }

  #waitingPodLeft(pod: Pod): void {
    const { queue, nominator } = this.#deps;
    const wasNominated = nominator.nodeOf(uidOf(pod)) !== undefined;
    queue.delete(uidOf(pod));
    nominator.delete(uidOf(pod));
    if (wasNominated) this.#nominationEnded(pod);
  }

  /** For pods of the same or a lower priority, a nominated pod is as good as one on the node. */
  #nominationEnded(pod: Pod): void {
    const priority = pod.spec?.priority ?? 0;
    this.#deps.queue.move(
      { resource: "AssignedPod", action: "Delete", before: pod, after: undefined },
      (other) => other.priority <= priority,
    );
  }

  #isOnNode(pod: Pod): boolean {
    return isAssigned(pod) && !isTerminated(pod);
  }

  #isWaiting(pod: Pod): boolean {
    return !isAssigned(pod) && !isTerminated(pod) && this.#deps.isResponsible(pod.spec?.schedulerName);
  }

  #forward<T extends ApiObject>(informer: Informer<T>, resource: EventResource, changed?: () => void): () => void {
    const { queue } = this.#deps;
    return informer.subscribe({
      put: (after, before) => {
        queue.move({ resource, action: before === undefined ? "Add" : "Update", before, after });
        changed?.();
      },
      delete: (before) => {
        queue.move({ resource, action: "Delete", before, after: undefined });
        changed?.();
      },
    });
  }
}
