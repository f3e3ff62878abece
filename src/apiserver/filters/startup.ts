import type { Filter, Handler } from "../../http/message.ts";
import { statusResponse } from "../../http/respond.ts";
import type { Logger } from "../../std/log/logger.ts";
import { respondHealth, type HealthEndpoint } from "../health/health.ts";

/**
 * While the server starts, health is all that it answers: nobody may take what has not been read yet for gone. There
 * are no rules yet either by which to tell who may ask, so that who asks hears no more than yes or no.
 */
export function withStartupRejection(hasStarted: () => boolean, health: readonly HealthEndpoint[], log: Logger): Filter {
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
