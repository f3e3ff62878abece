/**
 * Detects that the API server does not accept the client certificate any more, by 401 responses: the certificate has
 * expired, a clock was set, or the CA was replaced.
 */
import type { Transport } from "../../client/client.ts";
import { Wakeup } from "../../std/async/wakeup.ts";
import type { Clock } from "../../std/time/clock.ts";

/** A 401 that soon after a renewal is ignored: another certificate would get it too. */
const GRACE_AFTER_RENEWAL_MS = 60_000;

export class UnauthorizedResponses {
  readonly #clock: Clock;
  readonly #changed = new Wakeup();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #seen = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The transport, with its responses observed. */
  wrap(transport: Transport): Transport {
    return async (request) => {
      const response = await transport(request);
      if (response.status === 401) this.#record();
      return response;
    };
  }

  get seen(): boolean {
    return this.#seen;
  }

  /** Called when there is a new certificate. */
  certificateRenewed(): void {
    this.#seen = false;
    this.#renewedAt = this.#clock.monotonic();
  }

  /** Resolves at the next 401, or when the signal aborts. */
  waitForNext(signal: AbortSignal): Promise<void> {
    return this.#changed.wait(signal);
  }

  #record(): void {
    if (this.#seen || this.#clock.monotonic() - this.#renewedAt < GRACE_AFTER_RENEWAL_MS) return;
    this.#seen = true;
    this.#changed.notify();
  }
}
