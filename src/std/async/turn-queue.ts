import { Fifo } from "../collections/fifo.ts";

/**
 * Runs callbacks in their order, a limited number in each turn of the event loop. For many events that come at once,
 * each of which continues a request: requests of others proceed between them. Its owner bounds it.
 */
export class TurnQueue {
  readonly #perTurn: number;
  readonly #waiting = new Fifo<() => void>();
  /** Callbacks of the present turn. */
  #ran = 0;
  #isScheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Runs the callback at once while the turn has not had its number, otherwise in one of the next turns. */
  add(callback: () => void): void {
    if (this.#ran < this.#perTurn && this.#waiting.length === 0) this.#run(callback);
    else this.#waiting.push(callback);
  }

  #run(callback: () => void): void {
    this.#ran++;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(this.#proceed);
    }
    callback();
  }

  readonly #proceed = (): void => {
    this.#isScheduled = false;
    this.#ran = 0;
    while (this.#ran < this.#perTurn) {
      const callback = this.#waiting.shift();
      if (callback === undefined) return;
      this.#run(callback);
    }
  };
}
