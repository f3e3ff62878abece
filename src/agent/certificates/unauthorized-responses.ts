/**
 * Whether the API server still knows who asks. A 401 shows that it does not, whatever the certificate and this clock
 * say: the certificate has run out meanwhile, the clock was set, or the authority is another.
 */
import type { Transport } from "../../client/client.ts";
import type { Clock } from "../../std/time/clock.ts";
import { Wakeup } from "../../std/async/wakeup.ts";

/** What is refused that soon after a new certificate is not believed: another one would be refused too. */
const GRACE_AFTER_RENEWAL_MS = 60_000;

export class UnauthorizedResponses {
  readonly #clock: Clock;
  readonly #changed = new Wakeup();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #seen = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same transport, listened to. */
  wrap(transport: Transport): Transport {
    return async (request) => {
      const answer = await transport(request);
      if (answer.status === 401) this.#record();
      return answer;
    };
  }

  get seen(): boolean {
    return this.#seen;
  }

  /** There is a new certificate. */
  certificateRenewed(): void {
    this.#seen = false;
    this.#renewedAt = this.#clock.monotonic();
  }

  /** Resolves at the next refusal, or when the signal aborts. */
  waitForNext(signal: AbortSignal): Promise<void> {
    return this.#changed.wait(signal);
  }

  #record(): void {
    if (this.#seen || this.#clock.monotonic() - this.#renewedAt < GRACE_AFTER_RENEWAL_MS) return;
    this.#seen = true;
    this.#changed.notify();
  }
}
