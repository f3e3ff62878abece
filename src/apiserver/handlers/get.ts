import { createValueStream } from "../../http/value-stream.ts";
import { get } from "../../registry/get.ts";
import { list } from "../../registry/list.ts";
import type { Scope } from "../../registry/scope.ts";
import { watch } from "../../registry/watch.ts";
import type { RequestContext } from "../request/request-context.ts";
import { isTrue } from "../request/request-info.ts";
import { listResponse, objectResponse } from "../responses/object-response.ts";
import { advertisedTypes, type Format } from "../responses/representation.ts";
import { formNotAcceptable } from "../responses/status-response.ts";
import { watchStream, watchValues } from "../responses/watch-stream.ts";
import { listQuery, type WatchOptions, watchQuery } from "./query.ts";
import { answeringOf, type ResourceHandler, type ResourceSettings, scopeOf } from "./target.ts";

export const getObject: ResourceHandler = async (target, context, params) => {
  const answering = answeringOf(target, context, "object");
  const version = context.info.query.get("resourceVersion") ?? undefined;
  const found = await get(target.registry, scopeOf(target, context, params), params.name ?? "", version);
  return objectResponse(200, target.kind, found, answering);
};

export const listObjects: ResourceHandler = async (target, context, params) => {
  if (isTrue(context.info.query.get("watch"))) return await watchObjects(target, context, params);
  const answering = answeringOf(target, context, "list");
  const page = await list(target.registry, scopeOf(target, context, params), listQuery(context.info.query));
  return listResponse(target.kind, page, answering);
};

/** What streams are called where it is not as objects are. */
const STREAM_TYPES: Partial<Record<Format, (mediaType: string) => string>> = {
  protobuf: (mediaType) => `${mediaType};stream=watch`,
  cbor: () => "application/cbor-seq",
};

const watchObjects: ResourceHandler = async (target, context, params) => {
  const { settings, kind, registry } = target;
  const options = watchQuery(context.info.query, settings.watchList);
  const answering = answeringOf(target, context, "watch");
  // The bookmark at their end has no place in a table.
  if (options.sendInitialEvents && answering.representation.as === "table") {
    throw formNotAcceptable(advertisedTypes(settings.cbor));
  }
  const limit = new WatchLimit(context, settings, options);
  const scope: Scope = { ...scopeOf(target, context, params), signal: limit.signal };
  try {
    const events = await watch(registry, scope, options);
    const { mediaType, format } = answering.representation;
    const frames = () => limit.around(watchStream(kind, events, answering, settings.clock));
    return {
      status: 200,
      headers: { "content-type": STREAM_TYPES[format]?.(mediaType) ?? mediaType },
      body: createValueStream(frames, () => limit.around(watchValues(events))),
    };
  } catch (error) {
    limit.end();
    throw error;
  }
};

/** A watch ends when its client says, or some time between once and twice the server's least. */
class WatchLimit {
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

  async *around<V>(stream: AsyncIterable<V>): AsyncGenerator<V> {
    try {
      for await (const value of stream) yield value;
    } finally {
      this.end();
    }
  }
}
