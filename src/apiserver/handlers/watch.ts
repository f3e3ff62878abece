import { createValueStream } from "../../http/value-stream.ts";
import { isWebSocketRequest } from "../../http/websocket/handshake.ts";
import type { Scope } from "../../registry/scope.ts";
import { watch } from "../../registry/watch.ts";
import type { RequestContext } from "../request/request-context.ts";
import { advertisedTypes, type Format } from "../responses/representation.ts";
import { transformNotAcceptable } from "../responses/status-response.ts";
import { streamWatchFrames, streamWatchValues } from "../responses/watch-stream.ts";
import { watchWebSocket } from "../responses/websocket-stream.ts";
import { parseWatchQuery, type WatchOptions } from "./query.ts";
import { type ResourceHandler, type ResourceSettings, responseOptionsOf, scopeOf } from "./target.ts";

/** Media types of watch streams that differ from those of objects. */
const STREAM_MEDIA_TYPES: Partial<Record<Format, (mediaType: string) => string>> = {
  protobuf: (mediaType) => `${mediaType};stream=watch`,
  cbor: () => "application/cbor-seq",
};

/** GET with `watch=true`. */
export const watchObjects: ResourceHandler = async (target, context, params) => {
  const { settings, kind, registry } = target;
  const options = parseWatchQuery(context.info, settings.watchList);
  const responseOptions = responseOptionsOf(target, context, "watch");
  // A table cannot represent the bookmark at the end of the initial events.
  if (options.sendInitialEvents && responseOptions.representation.as === "table") {
    throw transformNotAcceptable(advertisedTypes(settings.cbor));
  }
  const timeout = new WatchTimeout(context, settings, options);
  const { watch: lifecycle } = context;
  lifecycle?.claim();
  const scope: Scope = { ...scopeOf(target, context, params), signal: timeout.signal };
  try {
    const onInitialized = lifecycle === undefined ? undefined : () => lifecycle.initialized();
    const events = await watch(registry, scope, { ...options, onInitialized });
    const { mediaType, format } = responseOptions.representation;
    const onEnd = () => timeout.end();
    const frames = () => streamWatchFrames(events, onEnd, { kind, responseOptions, clock: settings.clock });
    if (isWebSocketRequest(context.request)) return watchWebSocket(context.request, frames(), format);
    return {
      status: 200,
      headers: { "content-type": STREAM_MEDIA_TYPES[format]?.(mediaType) ?? mediaType },
      body: createValueStream(frames, () => streamWatchValues(events, onEnd)),
    };
  } catch (error) {
    timeout.end();
    throw error;
  }
};

/** Ends a watch after the client's timeout, or after a random time between one and two times --min-request-timeout. */
class WatchTimeout {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #timer: { cancel(): void };
  readonly #lifecycle: RequestContext["watch"];

  constructor(
    context: RequestContext,
    { clock, random, minWatchMs, stopping }: ResourceSettings,
    { timeoutSeconds }: WatchOptions,
  ) {
    this.signal = AbortSignal.any([context.signal, stopping, this.#controller.signal]);
    // A negative timeout has passed.
    const requestedMs = timeoutSeconds === undefined || timeoutSeconds === 0 ? undefined : timeoutSeconds * 1000;
    const ms = Math.max(0, requestedMs ?? minWatchMs * (1 + random.fraction()));
    this.#timer = clock.timer(ms, () => this.#controller.abort());
    this.#lifecycle = context.watch;
    // A disconnected client does not finish the stream.
    this.signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  end(): void {
    this.#stop();
    this.#controller.abort();
  }

  #stop(): void {
    this.#timer.cancel();
    this.#lifecycle?.ended();
  }
}
