/** The spans of a pod's worker, with the names and attributes of kubelet's: one from each wait to the next. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { AGENT_SCOPE, type Span, type SpanHolder } from "../../../tracing/span.ts";
import type { Tracer } from "../../../tracing/tracer.ts";
import type { SyncOperation } from "../pod-context.ts";
import { podUid } from "../pod-fields.ts";
import type { StateName } from "../states/pod-state.ts";

export class SyncSpans implements SpanHolder {
  readonly #tracer: Tracer;
  #operation: SyncOperation = "create";
  span: Span | undefined;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  begin(pod: Pod, state: StateName, operation: SyncOperation): void {
    this.end();
    this.#operation = operation;
    const { name = "", namespace = "" } = pod.metadata ?? {};
    const attributes = {
      "k8s.pod.uid": podUid(pod),
      "k8s.pod": `${namespace}/${name}`,
      "k8s.pod.name": name,
      "k8s.pod.update_type": operation,
      "k8s.namespace.name": namespace,
    };
    this.span = this.#tracer.start({ name: spanName(state), scope: AGENT_SCOPE, attributes });
    this.span.trace.decide(false);
  }

  /** Begins another span when the work changes to that of a pod that ends. */
  enter(pod: Pod, state: StateName): void {
    if (this.span !== undefined && this.span.name !== spanName(state)) this.begin(pod, state, this.#operation);
  }

  end(): void {
    this.span?.end();
    this.span = undefined;
  }
}

function spanName(state: StateName): string {
  if (state === "terminating") return "syncTerminatingPod";
  return state === "terminated" ? "syncTerminatedPod" : "syncPod";
}
