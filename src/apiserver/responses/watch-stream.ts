/** Encodes watch events as a stream of frames. Streams with the same encoding and group alias share frames. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { MappedIterator } from "../../std/async/mapped-iterator.ts";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { CacheEvent } from "../../storage/watch/watch-event.ts";
import { toStatus } from "../filters/error-responses.ts";
import { encodeCborEvent, jsonToCbor } from "./cbor.ts";
import type { ResponseOptions } from "./object-response.ts";
import { encodeProtobufFrame, encodeProtobufMetadata, encodeProtobufObject, encodeProtobufStatus } from "./protobuf.ts";
import { encodePartialMetadata, encodeTable } from "./table.ts";
import { typeMetaPrefix } from "./type-meta.ts";

type BookmarkEvent = Extract<CacheEvent<never>, { readonly type: "BOOKMARK" }>;
type ObjectEvent<T> = Exclude<CacheEvent<T>, { readonly type: "BOOKMARK" }>;

const OPENING_BRACE = 0x7b;
const FRAME_END = Buffer.from("}\n");
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";
const LIST_BLUEPRINT = "kubernetes.io/initial-events-list-blueprint";

/** Shared frames by event, then by encoding and apiVersion. */
const sharedFrames = new WeakMap<object, Map<string, Buffer>>();

/** A failed watch ends with a frame of type ERROR. `onEnd` is called once, when no more events are read. */
export function streamWatchFrames<T extends ApiObject>(
  events: AsyncIterable<CacheEvent<T>>,
  onEnd: () => void,
  { kind, responseOptions, clock }: FrameOptions<T>,
): AsyncIterable<Uint8Array> {
  const encoder = new FrameEncoder(kind, responseOptions, clock);
  return new MappedIterator(events, {
    map: (event) =>
      encoder.toMediaType(event.type === "BOOKMARK" ? encoder.encodeBookmark(event) : encoder.encodeChange(event)),
    recover: (error) => encoder.toMediaType(encoder.encodeError(error)),
    onEnd,
  });
}

interface FrameOptions<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly responseOptions: ResponseOptions;
  readonly clock: Clock;
}

/** The value of a frame; objects are those of the cache. */
interface WatchValue {
  readonly type: CacheEvent<never>["type"] | "ERROR";
  readonly object: object;
}

/** Streams values instead of frames, for readers in this process. */
export function streamWatchValues<T extends ApiObject>(
  events: AsyncIterable<CacheEvent<T>>,
  onEnd: () => void,
): AsyncIterable<WatchValue> {
  return new MappedIterator<CacheEvent<T>, WatchValue>(events, {
    map: (event) => {
      if (event.type !== "BOOKMARK") return { type: event.type, object: event.item.object };
      return { type: event.type, object: { metadata: bookmarkMetadata(event) } };
    },
    recover: (error) => ({ type: "ERROR", object: toStatus(error) }),
    onEnd,
  });
}

/** `more` annotations are added to the bookmark at the end of the initial events. */
function bookmarkMetadata({ revision, initialEventsEnd }: BookmarkEvent, more?: Readonly<Record<string, string>>) {
  const annotations = initialEventsEnd ? { annotations: { ...more, [INITIAL_EVENTS_END]: "true" } } : {};
  return { resourceVersion: String(revision), ...annotations };
}

class FrameEncoder<T extends ApiObject> {
  readonly #kind: Kind<T>;
  readonly #responseOptions: ResponseOptions;
  readonly #clock: Clock;
  readonly #frameKey: string;
  #headers = true;

  constructor(kind: Kind<T>, responseOptions: ResponseOptions, clock: Clock) {
    this.#kind = kind;
    this.#responseOptions = responseOptions;
    this.#clock = clock;
    const { typeMeta, representation } = responseOptions;
    this.#frameKey = `${typeMeta.apiVersion} ${representation.format} ${representation.magic}`;
  }

  /** Converts frames that are encoded as JSON to CBOR. */
  toMediaType(frame: Uint8Array): Uint8Array {
    const isJson = this.#responseOptions.representation.format === "cbor" && frame[0] === OPENING_BRACE;
    return isJson ? jsonToCbor(frame) : frame;
  }

  encodeChange(event: ObjectEvent<T>): Uint8Array {
    const { representation } = this.#responseOptions;
    if (representation.as === "table") return this.#encodeTable(event);
    if (representation.as === "metadata" && representation.format === "protobuf") {
      const { magic, metaVersion } = representation;
      return encodeProtobufFrame(event.type, encodeProtobufMetadata(magic, metaVersion, event.item.object));
    }
    if (representation.as === "metadata") {
      return jsonFrame(event.type, Buffer.from(encodePartialMetadata(event.item.object, representation.metaVersion)));
    }
    let byKey = sharedFrames.get(event);
    if (byKey === undefined) {
      byKey = new Map();
      sharedFrames.set(event, byKey);
    }
    let frame = byKey.get(this.#frameKey);
    if (frame === undefined) {
      frame = toUnpooledBuffer(this.#encodeObject(event));
      byKey.set(this.#frameKey, frame);
    }
    return frame;
  }

  encodeBookmark(event: BookmarkEvent): Uint8Array {
    const { typeMeta, representation } = this.#responseOptions;
    const metadata = bookmarkMetadata(event, event.initialEventsEnd ? this.#blueprint() : undefined);
    if (representation.format === "protobuf" && representation.as === "metadata") {
      return encodeProtobufFrame(
        "BOOKMARK",
        encodeProtobufMetadata(representation.magic, representation.metaVersion, { metadata }),
      );
    }
    if (representation.format === "protobuf") {
      const kind: Kind = this.#kind;
      return encodeProtobufFrame("BOOKMARK", encodeProtobufObject(representation.magic, typeMeta, kind, { metadata }));
    }
    if (representation.as === "table") {
      return jsonFrame(
        "BOOKMARK",
        encodeTable(this.#kind, typeMeta, { resourceVersion: String(event.revision) }, [], this.#tableOptions()),
      );
    }
    const as =
      representation.as === "metadata"
        ? { kind: "PartialObjectMetadata", apiVersion: representation.metaVersion }
        : typeMeta;
    const object = { ...as, metadata: { ...metadata, creationTimestamp: null } };
    return jsonFrame("BOOKMARK", Buffer.from(JSON.stringify(object)));
  }

  /** An empty list, to which clients add the initial events. */
  #blueprint(): Readonly<Record<string, string>> {
    const { typeMeta, representation } = this.#responseOptions;
    const list =
      representation.as === "metadata"
        ? { kind: "PartialObjectMetadataList", apiVersion: representation.metaVersion }
        : { kind: this.#kind.listKind, apiVersion: typeMeta.apiVersion };
    const blueprint = `${JSON.stringify({ ...list, metadata: {}, items: null })}\n`;
    return { [LIST_BLUEPRINT]: Buffer.from(blueprint).toString("base64") };
  }

  /** The last frame of a failed watch. */
  encodeError(error: unknown): Uint8Array {
    const status = toStatus(error);
    const { representation } = this.#responseOptions;
    if (representation.format === "protobuf") {
      return encodeProtobufFrame("ERROR", encodeProtobufStatus(representation.magic, status));
    }
    return jsonFrame("ERROR", Buffer.from(JSON.stringify(status)));
  }

  #encodeObject(event: ObjectEvent<T>): Buffer {
    const { typeMeta, representation } = this.#responseOptions;
    if (representation.format === "protobuf") {
      const object = encodeProtobufObject(representation.magic, typeMeta, this.#kind, event.item.object);
      return encodeProtobufFrame(event.type, object);
    }
    if (representation.format === "cbor") return encodeCborEvent(this.#kind, typeMeta, event.type, event.item.object);
    return jsonFrame(event.type, typeMetaPrefix(typeMeta), event.item.bytes.subarray(1));
  }

  #encodeTable(event: ObjectEvent<T>): Buffer {
    const metadata = { resourceVersion: String(event.revision) };
    return jsonFrame(
      event.type,
      encodeTable(this.#kind, this.#responseOptions.typeMeta, metadata, [event.item], this.#tableOptions()),
    );
  }

  #tableOptions() {
    const headers = this.#headers;
    this.#headers = false;
    const { representation, table: options } = this.#responseOptions;
    return { ...options, now: this.#clock.now(), metaVersion: representation.metaVersion, headers };
  }
}

function jsonFrame(type: string, ...object: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), ...object, FRAME_END]);
}
