/** Bodies that a handler did not read, of requests that it refused. */
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../../std/time/clock.ts";

/** As Go's server: the connection of a longer rest is closed. */
const DISCARDED_BYTES_MAX = 256 * 1024;
/** For the rest to arrive. */
const DISCARD_MS = 1000;

/**
 * Reads the rest of a request's body, so that the connection can be used again. Resolves when it is read, does not
 * arrive, or the client leaves; at once for one that is long, of unknown length, or being read by others.
 */
export async function discardUnread(incoming: IncomingMessage, clock: Clock): Promise<void> {
  const { headers, complete } = incoming;
  // One in chunks may have a chunk for each byte, which costs more than a connection.
  const length = Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
  const isSent = headers.expect === undefined && length <= DISCARDED_BYTES_MAX;
  // The handler has it, such as a proxy that still forwards it.
  const isRead = incoming.readableFlowing !== null || incoming.listenerCount("readable") > 0;
  if (complete || incoming.destroyed || isRead || !isSent) return;
  await new Promise<void>((resolve) => {
    const stop = (): void => {
      timer.cancel();
      incoming.pause();
      incoming.off("end", stop).off("close", stop).off("error", stop);
      resolve();
    };
    const timer = clock.timer(DISCARD_MS, stop);
    incoming.on("end", stop).on("close", stop).on("error", stop);
    incoming.resume();
  });
}
