/** A request's way through the server, from the connection inwards. */
import type { Filter, Handler } from "../../http/message.ts";
import { compression } from "../../http/respond.ts";
import { chain, type Respond } from "../context.ts";
import { measuring } from "../observe/request-metrics.ts";
import { authentication } from "../stages/authentication.ts";
import { authorization } from "../stages/authorization.ts";
import { crossOrigin } from "../stages/cors.ts";
import { deadline } from "../stages/deadline.ts";
import { failures } from "../stages/failures.ts";
import { impersonation } from "../stages/impersonation.ts";
import { maxInFlight } from "../stages/max-in-flight.ts";
import { receive } from "../stages/receive.ts";
import { strictTransportSecurity } from "../stages/transport-security.ts";
import type { Access } from "./access.ts";
import type { Foundation } from "./foundation.ts";

export function handlerOf(foundation: Foundation, { identities, authorizer }: Access, endpoint: Respond): Handler {
  const { config, clock, log, random, metrics } = foundation;
  const stagesInOrder = chain(
    [
      measuring(metrics.requests, clock),
      failures(log.child("http")),
      deadline(clock, config.limits.requestTimeoutMs, metrics.requests.terminated),
      authentication(identities.authenticate, clock, log.child("authentication")),
      impersonation(authorizer),
      maxInFlight(config.limits.inFlight, metrics.requests.terminated),
      authorization(authorizer, config.authorization.selectors),
    ],
    endpoint,
  );
  const filters: readonly Filter[] = [
    compression(),
    strictTransportSecurity(config.serving.strictTransportSecurity),
    crossOrigin(config.serving.corsOrigins),
  ];
  return filters.reduceRight<Handler>((next, filter) => filter(next), receive(stagesInOrder, random));
}
