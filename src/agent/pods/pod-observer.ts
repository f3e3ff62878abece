/** Looks at what the runtime has of one pod. */
import type { Pod } from "../../api/core/pod.ts";
import { nothing, type Observation, observe } from "../runtime/observation.ts";
import { isAway, type Runtime, RuntimeError } from "../runtime/runtime.ts";
import { allContainers, podUid } from "./pod-fields.ts";
import { withTerminationMessage } from "./termination-message.ts";

export interface PodObserverOptions {
  readonly runtime: Runtime;
  readonly pod: () => Pod;
  /** Called with each new observation, before the look ends. */
  readonly onSeen: (seen: Observation) => void;
  /** The runtime answers, but not how the pod is; called once until it does again. */
  readonly onUnknown: (error: RuntimeError) => void;
  readonly signal: AbortSignal;
}

export class PodObserver {
  readonly #options: PodObserverOptions;
  #observation: Observation = nothing;
  /** Looks follow each other, so that an older answer never replaces a newer one. */
  #looks: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isUnknown = false;

  constructor(options: PodObserverOptions) {
    this.#options = options;
  }

  /** What was seen last. */
  get observation(): Observation {
    return this.#observation;
  }

  /** Looks that have not ended. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Rejects when the runtime does not answer, or the signal aborts. */
  look(): Promise<Observation> {
    this.#waiting += 1;
    const look = this.#looks.then(async () => {
      try {
        this.#observation = await this.#see();
        this.#isUnknown = false;
      } catch (error) {
        this.#noteUnknown(error);
        throw error;
      } finally {
        this.#waiting -= 1;
      }
      this.#options.onSeen(this.#observation);
      return this.#observation;
    });
    this.#looks = look.catch(() => undefined);
    return look;
  }

  #noteUnknown(error: unknown): void {
    // Of a runtime that is away the node tells.
    if (this.#isUnknown || !(error instanceof RuntimeError) || isAway(error)) return;
    this.#isUnknown = true;
    this.#options.onUnknown(error);
  }

  async #see(): Promise<Observation> {
    const { runtime, signal } = this.#options;
    const pod = this.#options.pod();
    const known = this.#observation;
    const { sandboxes, containers } = await observe(runtime, podUid(pod), known, signal);
    const count = allContainers(pod).length;
    const read = containers.map(async (each) =>
      known.containers.includes(each) ? each : await withTerminationMessage(each, count),
    );
    return { sandboxes, containers: await Promise.all(read) };
  }
}
