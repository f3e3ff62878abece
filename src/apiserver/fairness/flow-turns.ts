/**
 * Lets flows share the event loop: of many requests of one flow a few proceed in each turn, so that those of others do
 * not wait for all of them. Kubernetes leaves this to the scheduler of Go, which runs requests in parallel.
 */
import { Fifo } from "../../std/collections/fifo.ts";

/** Requests of a flow that proceed at once: in one turn, or within the window while the flow is not delayed. */
const REQUESTS_PER_TURN = 2;
const WINDOW_MS = 0.25;

/** The turns of one flow. */
export class FlowTurn {
  /** Monotonic milliseconds of the first request in the window. */
  windowMs = Number.NEGATIVE_INFINITY;
  count = 0;
  /** As many as requests of the flow have seats, or are being rejected. */
  readonly waiting = new Fifo<() => void>();
}

export class FlowTurns {
  /** Flows with a waiting request, each once. */
  #flows: FlowTurn[] = [];
  #isScheduled = false;

  /** Undefined: the request proceeds at once; else a promise of its turn. */
  take(flow: FlowTurn, nowMs: number): Promise<void> | undefined {
    if (flow.waiting.length === 0) {
      if (nowMs - flow.windowMs >= WINDOW_MS) {
        flow.windowMs = nowMs;
        flow.count = 1;
        return undefined;
      }
      if (++flow.count <= REQUESTS_PER_TURN) return undefined;
      this.#flows.push(flow);
      this.#schedule();
    }
    return new Promise((resolve) => flow.waiting.push(resolve));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#proceed());
  }

  #proceed(): void {
    this.#isScheduled = false;
    const flows = this.#flows;
    this.#flows = flows.filter((flow) => {
      for (let count = 0; count < REQUESTS_PER_TURN; count++) flow.waiting.shift()?.();
      return flow.waiting.length > 0;
    });
    if (this.#flows.length > 0) this.#schedule();
  }
}
