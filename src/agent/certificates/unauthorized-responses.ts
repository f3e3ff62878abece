/**
 * Whether the API server still knows who asks. A 401 shows that it does not, whatever the certificate and this clock
 * say: the certificate has run out meanwhile, the clock was set, or the authority is another.
 */
import type { Transport } from "../../client/client.ts";
import type { Clock } from "../../std/time/clock.ts";
import { Wakeup } from "../../std/async/wakeup.ts";

/** What is refused that soon after a new certificate is not believed: another one would be refused too. */
const AGAIN_MS = 60_000;

export class Refusals {
  readonly #clock: Clock;
  readonly #changed = new Wakeup();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #any = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same transport, listened to. */
  of(transport: Transport): Transport {
    return async (request) => {
      const answer = await transport(request);
      if (answer.status === 401) this.#note();
      return answer;
    };
  }

  get any(): boolean {
    return this.#any;
  }

  /** There is a new certificate. */
  renewed(): void {
    this.#any = false;
    this.#renewedAt = this.#clock.monotonic();
  }

  /** Resolves at the next refusal, or when the signal aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return this.#changed.wait(signal);
  }

  #note(): void {
    if (this.#any || this.#clock.monotonic() - this.#renewedAt < AGAIN_MS) return;
    this.#any = true;
    this.#changed.notify();
  }
}
