/**
 * Lets flows share the event loop: of many requests of one flow a few proceed in each turn, so that those of others do
 * not wait for all of them. Kubernetes leaves this to the scheduler of Go, which runs requests in parallel.
 */
import { Fifo } from "../../std/collections/fifo.ts";

/** Requests of a flow that proceed in one turn. Fewer share less of the cost of a turn: reading, writing, TLS. */
const PER_TURN = 32;
/** The same while more than so many of the flow wait: then the delay of each turn counts more than its cost. */
const PER_TURN_CROWDED = 2;
const CROWD = 64;
/** A flow without another one in this time is not limited. Nodes send requests every 10 s. */
const SHARED_MS = 15_000;

interface WaitingRequest {
  readonly cost: number;
  readonly proceed: () => void;
}

/** The turns of one flow. */
export class FlowTurn {
  /** What proceeded since the last turn that limited the flow, in requests. */
  used = 0;
  /** As many as requests of the flow have seats, or are being rejected. */
  readonly waiting = new Fifo<WaitingRequest>();
}

export class FlowTurns {
  #latest: FlowTurn | undefined;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  /** Flows that have used up the current turn, each once. Only these have waiting requests. */
  #limited: FlowTurn[] = [];
  #isScheduled = false;

  /** Records a request that never waits; those of others do not delay it. */
  pass(flow: FlowTurn, nowMs: number): void {
    if (this.#latest === flow) return;
    if (this.#latest !== undefined) this.#sharedUntilMs = nowMs + SHARED_MS;
    this.#latest = flow;
  }

  /**
   * Undefined: the request proceeds at once; else a promise of its turn. A request of several seats, which is a list,
   * takes a whole turn.
   */
  take(flow: FlowTurn, nowMs: number, seats = 1): Promise<void> | undefined {
    this.pass(flow, nowMs);
    const cost = seats > 1 ? PER_TURN : 1;
    if (flow.used >= PER_TURN) return new Promise((resolve) => flow.waiting.push({ cost, proceed: resolve }));
    if (nowMs >= this.#sharedUntilMs) return undefined;
    flow.used += cost;
    if (flow.used >= PER_TURN) {
      this.#limited.push(flow);
      this.#schedule();
    }
    return undefined;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#proceed());
  }

  #proceed(): void {
    this.#isScheduled = false;
    this.#limited = this.#limited.filter((flow) => {
      const isCrowded = flow.waiting.length > CROWD;
      flow.used = isCrowded ? PER_TURN - PER_TURN_CROWDED : 0;
      while (flow.used < PER_TURN) {
        const request = flow.waiting.shift();
        if (request === undefined) return false;
        flow.used += request.cost;
        request.proceed();
      }
      return true;
    });
    if (this.#limited.length > 0) this.#schedule();
  }
}
