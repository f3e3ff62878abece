/** Reports events, and the status of pods and of their mirror pods. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { createQueueMetrics } from "../../std/metrics/queue-metrics.ts";
import { createStatusHistogram } from "../metrics/status-metrics.ts";
import type { RecordNodeEvent } from "../node/node-events.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { isStatic, podUid } from "../pods/pod-fields.ts";
import { MirrorPods } from "../sources/mirror-pods.ts";
import { StatusManager } from "../status/status-manager.ts";
import type { Foundation } from "./foundation.ts";
import { createPodEventRecorder, toNodeReference } from "./pod-services.ts";

/** Source component of the agent's events. */
const COMPONENT = "svclet";

export interface Reporting {
  /** Receives the Node object, its lease and events; undefined: nothing is reported. */
  readonly client: Client | undefined;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly podEvents: PodEventRecorder;
  /** Undefined: there is no API server. */
  readonly status: StatusManager | undefined;
  /** Undefined: there is no API server. */
  readonly mirrors: MirrorPods | undefined;
  /** `isOver`: the pod has terminated and is not wanted any more. */
  setPodStatus(pod: Pod, status: PodStatus, isOver: boolean): void;
  removePod(pod: Pod): void;
}

export function openReporting(foundation: Foundation): Reporting {
  const { config, clock, log, client, standalone, stack } = foundation;
  const { nodeName } = config;
  const random = systemRandom;
  const reportingClient = client ?? standalone?.client;
  const { eventQps: qps, eventBurst: burst } = config.pods;
  const events = { clock, random, log, component: COMPONENT, host: nodeName, qps, burst };
  const recorder = reportingClient && stack.use(createEventRecorder({ client: reportingClient, ...events }));
  const status = client && openStatusManager(foundation, client);
  const mirrors =
    client &&
    status &&
    stack.use(new MirrorPods({ client, clock, random, log: log.child("mirror"), nodeName, status }));
  return {
    client: reportingClient,
    recordNodeEvent: (...event) => recorder?.record(toNodeReference(nodeName), ...event),
    podEvents: createPodEventRecorder(recorder),
    status,
    mirrors,
    setPodStatus(pod, state, isOver) {
      standalone?.putPod(pod, state);
      if (!isStatic(pod)) status?.setStatus(pod, state);
      // The last status of a deleted static pod is the one in which its containers stopped.
      else if (!isOver) mirrors?.setStatus(pod, state);
    },
    removePod(pod) {
      standalone?.deletePod(pod);
      if (isStatic(pod)) mirrors?.delete(pod);
      else status?.removePod(podUid(pod));
    },
  };
}

function openStatusManager({ clock, log, metrics, stack }: Foundation, client: Client): StatusManager {
  return stack.use(
    new StatusManager({
      client,
      clock,
      random: systemRandom,
      log: log.child("status-manager"),
      queueMetrics: createQueueMetrics(metrics)("pod-status"),
      syncDuration: createStatusHistogram(metrics),
    }),
  );
}
