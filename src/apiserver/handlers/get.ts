import { createValueStream } from "../../http/value-stream.ts";
import { get } from "../../registry/get.ts";
import { list } from "../../registry/list.ts";
import type { Scope } from "../../registry/scope.ts";
import { watch } from "../../registry/watch.ts";
import type { RequestContext } from "../request/request-context.ts";
import { isTrue } from "../request/request-info.ts";
import { listResponse, objectResponse } from "../responses/object-response.ts";
import { advertisedTypes, type Format } from "../responses/representation.ts";
import { transformNotAcceptable } from "../responses/status-response.ts";
import { streamWatchFrames, streamWatchValues } from "../responses/watch-stream.ts";
import { parseListQuery, type WatchOptions, parseWatchQuery } from "./query.ts";
import { responseOptionsOf, type ResourceHandler, type ResourceSettings, scopeOf } from "./target.ts";

export const getObject: ResourceHandler = async (target, context, params) => {
  const responseOptions = responseOptionsOf(target, context, "object");
  const version = context.info.query.get("resourceVersion") ?? undefined;
  const found = await get(target.registry, scopeOf(target, context, params), params.name ?? "", version);
  return objectResponse(200, target.kind, found, responseOptions);
};

export const listObjects: ResourceHandler = async (target, context, params) => {
  if (isTrue(context.info.query.get("watch"))) return await watchObjects(target, context, params);
  const responseOptions = responseOptionsOf(target, context, "list");
  const page = await list(target.registry, scopeOf(target, context, params), parseListQuery(context.info.query));
  return listResponse(target.kind, page, responseOptions);
};

/** What streams are called where it is not as objects are. */
const STREAM_MEDIA_TYPES: Partial<Record<Format, (mediaType: string) => string>> = {
  protobuf: (mediaType) => `${mediaType};stream=watch`,
  cbor: () => "application/cbor-seq",
};

const watchObjects: ResourceHandler = async (target, context, params) => {
  const { settings, kind, registry } = target;
  const options = parseWatchQuery(context.info.query, settings.watchList);
  const responseOptions = responseOptionsOf(target, context, "watch");
  // The bookmark at their end has no place in a table.
  if (options.sendInitialEvents && responseOptions.representation.as === "table") {
    throw transformNotAcceptable(advertisedTypes(settings.cbor));
  }
  const timeout = new WatchTimeout(context, settings, options);
  const scope: Scope = { ...scopeOf(target, context, params), signal: timeout.signal };
  try {
    const events = await watch(registry, scope, options);
    const { mediaType, format } = responseOptions.representation;
    const frames = () => timeout.wrap(streamWatchFrames(kind, events, responseOptions, settings.clock));
    return {
      status: 200,
      headers: { "content-type": STREAM_MEDIA_TYPES[format]?.(mediaType) ?? mediaType },
      body: createValueStream(frames, () => timeout.wrap(streamWatchValues(events))),
    };
  } catch (error) {
    timeout.end();
    throw error;
  }
};

/** A watch ends when its client says, or some time between once and twice the server's least. */
class WatchTimeout {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #timer: { cancel(): void };

  constructor(
    context: RequestContext,
    { clock, random, minWatchMs, stopping }: ResourceSettings,
    { timeoutSeconds }: WatchOptions,
  ) {
    this.signal = AbortSignal.any([context.signal, stopping, this.#controller.signal]);
    const asked = timeoutSeconds === undefined || timeoutSeconds <= 0 ? undefined : timeoutSeconds * 1000;
    this.#timer = clock.timer(asked ?? minWatchMs * (1 + random.fraction()), () => this.#controller.abort());
    // Whoever reads may be gone without a word.
    this.signal.addEventListener("abort", () => this.#timer.cancel(), { once: true });
  }

  end(): void {
    this.#timer.cancel();
    this.#controller.abort();
  }

  async *wrap<V>(stream: AsyncIterable<V>): AsyncGenerator<V> {
    try {
      for await (const value of stream) yield value;
    } finally {
      this.end();
    }
  }
}
