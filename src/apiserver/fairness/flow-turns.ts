/**
 * Lets flows share the event loop: of many requests of one flow a few proceed in each turn, so that those of others do
 * not wait for all of them. Kubernetes leaves this to the scheduler of Go, which runs requests in parallel.
 */
import { Fifo } from "../../std/collections/fifo.ts";

/** Requests of a flow that proceed in one turn. Fewer share less of the cost of a turn: reading, writing, TLS. */
const REQUESTS_PER_TURN = 8;
/** While a flow is not delayed, its requests within this time count as those of one turn. */
const WINDOW_MS = 0.25;
/** A flow without another one in this time is not limited. */
const SHARED_MS = 100;

/** The turns of one flow. */
export class FlowTurn {
  /** Monotonic milliseconds of the first request in the window. */
  windowMs = Number.NEGATIVE_INFINITY;
  count = 0;
  /** As many as requests of the flow have seats, or are being rejected. */
  readonly waiting = new Fifo<() => void>();
}

export class FlowTurns {
  #latest: FlowTurn | undefined;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  /** Flows with a waiting request, each once. */
  #flows: FlowTurn[] = [];
  #isScheduled = false;

  /** Records a request that never waits; those of others do not delay it. */
  pass(flow: FlowTurn, nowMs: number): void {
    if (this.#latest === flow) return;
    if (this.#latest !== undefined) this.#sharedUntilMs = nowMs + SHARED_MS;
    this.#latest = flow;
  }

  /** Undefined: the request proceeds at once; else a promise of its turn. */
  take(flow: FlowTurn, nowMs: number): Promise<void> | undefined {
    this.pass(flow, nowMs);
    if (flow.waiting.length === 0) {
      if (nowMs - flow.windowMs >= WINDOW_MS) {
        flow.windowMs = nowMs;
        flow.count = 1;
        return undefined;
      }
      if (++flow.count <= REQUESTS_PER_TURN || nowMs >= this.#sharedUntilMs) return undefined;
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
