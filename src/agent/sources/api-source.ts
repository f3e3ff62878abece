/** Watches the pods that are bound to this node. */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { isStatic, podUid } from "../pods/pod-fields.ts";
import { isMirror } from "./mirror-pods.ts";
import { sourceAnnotation } from "./static-pod.ts";

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
  informer.subscribe({
    put(pod, previous) {
      // The pod was deleted and recreated under the same name while the watch was interrupted.
      if (previous !== undefined && podUid(previous) !== podUid(pod)) options.onDelete(previous);
      options.onPut(clearStaticSource(pod));
    },
    delete: (pod) => options.onDelete(pod),
  });
  return informer;
}

/** Static pods have more permissions: a pod of the API server must not pass as one, unless it is a mirror pod. */
function clearStaticSource(pod: Pod): Pod {
  if (!isStatic(pod) || isMirror(pod)) return pod;
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata?.annotations, [sourceAnnotation]: "api" } },
  };
}
