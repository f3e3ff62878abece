import type { Filter } from "../../../http/message.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";

/**
 * Sends GOAWAY on the HTTP/2 connection of a random fraction of requests, after the response. Clients reconnect, and a
 * load balancer distributes them over the current servers.
 */
export function withProbabilisticGoaway(chance: number, random: RandomSource): Filter {
  if (chance <= 0) return (next) => next;
  return (next) => async (request) => {
    const chosen = request.peer.protocol === "h2" && random.fraction() < chance;
    const response = await next(request);
    return chosen ? { ...response, headers: { ...response.headers, connection: "close" } } : response;
  };
}
