/** Calls of another thread by messages. */

/** Further calls are rejected. */
const CALLS_MAX = 10_000;

/** Calls that wait for their results. */
export class PendingCalls {
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  /** `send` sends the call with its id. */
  async call<R>(send: (id: number) => void): Promise<R> {
    if (this.#pending.size >= CALLS_MAX) throw new Error(`${CALLS_MAX} calls of another thread are in progress`);
    const call = Promise.withResolvers<unknown>();
    const id = ++this.#lastId;
    this.#pending.set(id, call);
    send(id);
    return (await call.promise) as R;
  }

  resolve(id: number, result: unknown): void {
    this.#take(id)?.resolve(result);
  }

  reject(id: number, message: string): void {
    this.#take(id)?.reject(new Error(message));
  }

  rejectAll(message: string): void {
    for (const id of [...this.#pending.keys()]) this.reject(id, message);
  }

  #take(id: number): PromiseWithResolvers<unknown> | undefined {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    return call;
  }
}
