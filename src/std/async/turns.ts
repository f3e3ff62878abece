/** How much one client may do in a turn of the event loop while others wait for it. */

/** Requests in one turn. Fewer share less of the cost of a turn: reading, writing, TLS. */
export const REQUESTS_PER_TURN = 32;
/** Requests in one turn while more than `CROWD` wait: then the delay of each turn counts more than its cost. */
export const REQUESTS_PER_TURN_CROWDED = 2;
export const CROWD = 64;
/** A client is not limited when no other one sent a request in this time. Nodes send requests every 10 s. */
export const SHARED_MS = 15_000;
