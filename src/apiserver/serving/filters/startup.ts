import { type HealthEndpoint, respondHealth } from "../../../http/health.ts";
import type { Filter, Handler } from "../../../http/message.ts";
import { statusResponse } from "../../../http/respond.ts";
import type { Logger } from "../../../std/log/logger.ts";

/**
 * Serves only the health endpoints while the server starts and responds 503 to other requests: an empty cache must not
 * look like deleted objects. Authorization is not ready either, so that health responses have no details.
 */
export function withStartupRejection(
  hasStarted: () => boolean,
  health: readonly HealthEndpoint[],
  log: Logger,
): Filter {
  const pages = new Map(health.map((endpoint) => [`/${endpoint.name}`, endpoint]));
  const respond: Handler = async (request) => {
    const page = pages.get(request.path);
    if (page !== undefined) return await respondHealth(page, "", NO_QUERY, log);
    return statusResponse(503, "ServiceUnavailable", "the server is starting, please try again later", {
      "retry-after": "1",
    });
  };
  return (next) => (request) => (hasStarted() ? next(request) : respond(request));
}

const NO_QUERY = new URLSearchParams();
