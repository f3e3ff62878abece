/**
 * Lets flows share the event loop: of many requests of one flow a few proceed in each turn, so that those of others do
 * not wait for all of them. Kubernetes leaves this to the scheduler of Go, which runs requests in parallel.
 */
import { CROWD, REQUESTS_PER_TURN, REQUESTS_PER_TURN_CROWDED, SHARED_MS } from "../../std/async/turns.ts";
import { Fifo } from "../../std/collections/fifo.ts";

/** From one list of a flow to the next, since a request of another flow needs several turns. */
const TURNS_PER_LIST = 4;

interface WaitingRequest {
  readonly isList: boolean;
  readonly proceed: () => void;
}

/** The turns of one flow. */
export class FlowTurn {
  /** As many as requests of the flow have seats, or are being rejected. */
  readonly waiting = new Fifo<WaitingRequest>();
  /** Requests that wait for seats: they proceed as soon as others end. */
  queued = 0;
  /** Requests that may proceed until the next turn that limits the flow. */
  #allowed = REQUESTS_PER_TURN;
  /** Turns until the flow proceeds again. */
  #turnsLeft = 0;

  /** Whether further requests wait for another turn. */
  get isLimited(): boolean {
    return this.#turnsLeft > 0;
  }

  /** Counts a request that proceeds. */
  count(isList: boolean): void {
    this.#allowed--;
    if (isList) this.#turnsLeft = TURNS_PER_LIST;
    else if (this.#allowed <= 0) this.#turnsLeft = 1;
  }

  /** Begins a turn, in which waiting requests proceed. */
  proceed(): void {
    this.#turnsLeft--;
    if (this.#turnsLeft > 0) return;
    this.#allowed = this.waiting.length + this.queued > CROWD ? REQUESTS_PER_TURN_CROWDED : REQUESTS_PER_TURN;
    while (!this.isLimited) {
      const request = this.waiting.shift();
      if (request === undefined) return;
      this.count(request.isList);
      request.proceed();
    }
  }
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
   * takes several turns.
   */
  take(flow: FlowTurn, nowMs: number, seats = 1): Promise<void> | undefined {
    this.pass(flow, nowMs);
    const isList = seats > 1;
    if (flow.isLimited) return new Promise((resolve) => flow.waiting.push({ isList, proceed: resolve }));
    if (nowMs >= this.#sharedUntilMs) return undefined;
    flow.count(isList);
    if (flow.isLimited) {
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
      flow.proceed();
      return flow.isLimited;
    });
    if (this.#limited.length > 0) this.#schedule();
  }
}
