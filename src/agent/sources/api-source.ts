/** Watches the pods that are bound to this node. */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podUid } from "../pods/pod-fields.ts";
import { isMirror } from "./mirror-pods.ts";
import { seenAnnotation, sourceAnnotation } from "./static-pod.ts";

export interface ApiSourceOptions {
  readonly client: Client;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly onPut: (pod: Pod) => void;
  readonly onDelete: (pod: Pod) => void;
  readonly signal: AbortSignal;
}

export function startApiSource(options: ApiSourceOptions): Informer<Pod> {
  const { client, clock, random, log, signal } = options;
  const query = { fieldSelector: `spec.nodeName=${options.nodeName}` };
  const informer = startInformer({ client, kind: podKind, query, clock, random, log }, signal);
  /** When each pod was first listed, RFC 3339, by uid; bounded by the pods of the node. */
  const firstSeen = new Map<string, string>();
  const onDelete = (pod: Pod): void => {
    firstSeen.delete(podUid(pod));
    options.onDelete(pod);
  };
  informer.subscribe({
    put(pod, previous) {
      // The pod was deleted and recreated under the same name while the watch was interrupted.
      if (previous !== undefined && podUid(previous) !== podUid(pod)) onDelete(previous);
      if (isMirror(pod)) return options.onPut(pod);
      const seen = firstSeen.get(podUid(pod)) ?? new Date(clock.now()).toISOString();
      firstSeen.set(podUid(pod), seen);
      options.onPut(annotateSource(pod, seen));
    },
    delete: onDelete,
  });
  return informer;
}

/**
 * Sets the annotations that the downward API of Kubernetes shows. Static pods have more permissions: a pod of the API
 * server must not pass as one.
 */
function annotateSource(pod: Pod, seen: string): Pod {
  const { annotations } = pod.metadata ?? {};
  const added = { [seenAnnotation]: seen, [sourceAnnotation]: "api" };
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...annotations, ...added } } };
}
