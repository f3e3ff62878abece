import type { Filter, HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";

/** Whoever asks for these wants to hear how the server is, above all while it stops. */
const EXEMPT_PATHS = /^\/(?:healthz|livez|readyz|metrics)/;

/** Sends new requests to other servers while this one finishes what it has begun. */
export class RetryAfterOnShutdown {
  #inFlight = 0;
  #drained: PromiseWithResolvers<void> | undefined;

  readonly filter: Filter = (next) => async (request) => {
    if (this.#drained !== undefined && !EXEMPT_PATHS.test(request.path)) return shuttingDownResponse();
    this.#inFlight++;
    try {
      // Answers that last have been answered, here, when they begin: `LongRunning` ends them.
      return await next(request);
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#drained?.resolve();
    }
  };

  /** From now on new requests are turned away; resolves when those that have begun are answered. */
  async begin(): Promise<void> {
    this.#drained ??= Promise.withResolvers();
    if (this.#inFlight === 0) this.#drained.resolve();
    await this.#drained.promise;
  }
}

function shuttingDownResponse(): HttpResponse {
  return textResponse(429, "The apiserver is shutting down, please try again later.\n", {
    "retry-after": "5",
    connection: "close",
    "x-content-type-options": "nosniff",
  });
}
