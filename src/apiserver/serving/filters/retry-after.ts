import type { Filter, HttpResponse } from "../../../http/message.ts";
import { textResponse } from "../../../http/respond.ts";

/** Health checks and metrics are served during the shutdown. */
const EXEMPT_PATHS = /^\/(?:healthz|livez|readyz|metrics)/;

/** Responds 429 with `Retry-After` to new requests during a shutdown, while requests in flight are completed. */
export class RetryAfterOnShutdown {
  #inFlight = 0;
  #drained: PromiseWithResolvers<void> | undefined;

  readonly filter: Filter = (next) => async (request) => {
    if (this.#drained !== undefined && !EXEMPT_PATHS.test(request.path)) return shuttingDownResponse();
    this.#inFlight++;
    try {
      // A streamed response is complete here when it begins; `WatchTermination` ends it.
      return await next(request);
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#drained?.resolve();
    }
  };

  /** Starts to reject new requests; resolves when the requests in flight are completed. */
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
