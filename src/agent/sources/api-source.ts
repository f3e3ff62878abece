/** Watches the pods that are bound to this node. */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
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

type Annotations = Readonly<Record<string, string>>;

interface KnownPod {
  /** When it was first listed, RFC 3339. */
  readonly firstSeen: string;
  /** Of the API server. */
  readonly annotations: Annotations | undefined;
  /** With those of the source. */
  readonly shown: Annotations;
}

export function startApiSource(options: ApiSourceOptions): Informer<Pod> {
  const { client, clock, random, log, signal } = options;
  const query = { fieldSelector: `spec.nodeName=${options.nodeName}` };
  const informer = startInformer({ client, kind: podKind, query, clock, random, log }, signal);
  /** By uid; bounded by the pods of the node. */
  const known = new Map<string, KnownPod>();
  const onDelete = (pod: Pod): void => {
    known.delete(podUid(pod));
    options.onDelete(pod);
  };
  informer.subscribe({
    put(pod, previous) {
      // The pod was deleted and recreated under the same name while the watch was interrupted.
      if (previous !== undefined && podUid(previous) !== podUid(pod)) onDelete(previous);
      if (isMirror(pod)) return options.onPut(pod);
      const before = known.get(podUid(pod));
      const { annotations } = pod.metadata ?? {};
      const firstSeen = before?.firstSeen ?? new Date(clock.now()).toISOString();
      // A copy of thousands of annotations takes many milliseconds, and each later comparison with those before too.
      const isUnchanged = before !== undefined && deepEqual(before.annotations, annotations);
      const shown = isUnchanged ? before.shown : annotateSource(annotations, firstSeen);
      known.set(podUid(pod), { firstSeen, annotations, shown });
      options.onPut({ ...pod, metadata: { ...pod.metadata, annotations: shown } });
    },
    delete: onDelete,
  });
  return informer;
}

/**
 * Sets the annotations that the downward API of Kubernetes shows. Static pods have more permissions: a pod of the API
 * server must not pass as one.
 */
function annotateSource(annotations: Annotations | undefined, firstSeen: string): Annotations {
  return { ...annotations, [seenAnnotation]: firstSeen, [sourceAnnotation]: "api" };
}
