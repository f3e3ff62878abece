import type { Filter } from "../../http/message.ts";
import type { RandomSource } from "../../std/crypto/random.ts";

/**
 * Ends the HTTP/2 connection of one request in so many, after the answer: clients that hold theirs for weeks come
 * again, and a load balancer spreads them over the servers there are now.
 */
export function withProbabilisticGoaway(chance: number, random: RandomSource): Filter {
  if (chance <= 0) return (next) => next;
  return (next) => async (request) => {
    const chosen = request.peer.protocol === "h2" && random.fraction() < chance;
    const response = await next(request);
    return chosen ? { ...response, headers: { ...response.headers, connection: "close" } } : response;
  };
}
