/** Profiling and log verbosity, on the secure port and on the unauthenticated socket of --debug-socket-path. */
import { rm } from "node:fs/promises";
import type { Handler } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { Router } from "../../http/router.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import { EventLoopContention } from "../../profiling/contention.ts";
import { createDebugPages, type DebugPage } from "../../profiling/debug-pages.ts";
import type { Logger } from "../../std/log/logger.ts";
import { SOCKET_PATH_BYTES_MAX } from "../../std/net/socket-path.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ObservabilityConfig } from "../config/config.ts";

export interface DebugEndpointsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly setVerbosity: (level: number) => void;
}

export class DebugEndpoints implements AsyncDisposable {
  readonly pages: readonly DebugPage[];
  readonly #contention: EventLoopContention | undefined;
  #socket: Listener | undefined;

  constructor({ profiling, contentionProfiling }: ObservabilityConfig, { clock, setVerbosity }: DebugEndpointsDeps) {
    this.#contention = profiling && contentionProfiling ? new EventLoopContention(clock) : undefined;
    this.pages = createDebugPages({ clock, contention: this.#contention, setVerbosity });
  }

  /** Rejects with one sentence when the socket cannot be created. A socket that another process left is replaced. */
  async openSocket(path: string, { clock, log }: DebugEndpointsDeps): Promise<void> {
    try {
      this.#socket = await listen({ socketPath: path, handler: createSocketHandler(this.pages), clock, log });
    } catch (cause) {
      const long = Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX;
      const message = cause instanceof Error ? cause.message : String(cause);
      const reason = long ? `the path of a socket has at most ${SOCKET_PATH_BYTES_MAX} bytes` : message;
      throw new Error(`Cannot use --debug-socket-path="${path}": ${reason}`, { cause });
    }
    log.info("Serving profiles on a socket", { path });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#contention?.[Symbol.dispose]();
    if (this.#socket === undefined) return;
    await this.#socket.close();
    await rm(this.#socket.address, { force: true });
  }
}

function createSocketHandler(pages: readonly DebugPage[]): Handler {
  const router = new Router<DebugPage>();
  for (const page of pages) for (const method of page.methods) router.add(method, page.path, page);
  return async (request) => {
    const method = request.method === "HEAD" ? "GET" : request.method;
    const match = router.match(method, request.path);
    if (match === undefined) return textResponse(404, "404 page not found\n");
    return "value" in match ? await match.value.respond(request) : textResponse(405, "method not allowed\n");
  };
}
