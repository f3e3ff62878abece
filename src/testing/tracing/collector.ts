/** A collector of OpenTelemetry: OTLP over gRPC, which decodes the spans that programs export. */
import * as grpc from "@grpc/grpc-js";
import type { Test } from "tap";

/** The fields of a protobuf message by number, in their order. */
type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

export interface CollectedSpan {
  readonly service: string;
  readonly scope: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  /** 1: internal, 2: server, 3: client. */
  readonly kind: number;
  readonly startNanoseconds: bigint;
  readonly endNanoseconds: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  /** Trace IDs. */
  readonly links: readonly string[];
  /** 0: unset, 2: error. */
  readonly status: number;
}

export interface Collector {
  readonly endpoint: string;
  readonly spans: readonly CollectedSpan[];
  /** The number of calls of Export. */
  readonly calls: number;
  /** What the collector responds from now on: bytes, a gRPC status, or nothing. */
  respond: Buffer | grpc.status | "never";
  stop(): void;
}

const definition: grpc.MethodDefinition<Buffer, Buffer> = {
  path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
  requestStream: false,
  responseStream: false,
  requestSerialize: (bytes) => bytes,
  requestDeserialize: (bytes) => bytes,
  responseSerialize: (bytes) => bytes,
  responseDeserialize: (bytes) => bytes,
};

/** Listens at a port of 127.0.0.1 or at a target such as `unix:///tmp/s`, until the end of the test. */
export async function startCollector(t: Test, target = "127.0.0.1:0"): Promise<Collector> {
  const server = new grpc.Server();
  const spans: CollectedSpan[] = [];
  let calls = 0;
  const handle: grpc.handleUnaryCall<Buffer, Buffer> = ({ request }, done) => {
    calls++;
    const { respond } = collector;
    if (respond === "never") return;
    if (typeof respond === "number") {
      done({ code: respond, details: "refused" });
      return;
    }
    spans.push(...decodeSpans(request));
    done(null, respond);
  };
  server.addService({ Export: definition }, { Export: handle });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(target, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const collector: Collector = {
    endpoint: target.startsWith("unix") ? target : `127.0.0.1:${port}`,
    spans,
    get calls() {
      return calls;
    },
    respond: Buffer.alloc(0),
    stop: () => server.forceShutdown(),
  };
  t.teardown(collector.stop);
  return collector;
}

function decodeSpans(request: Buffer): readonly CollectedSpan[] {
  return messages(parse(request), 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1);
    const service = String(attributesOf(resource ?? new Map(), 1)["service.name"]);
    return messages(resourceSpans, 2).flatMap((scopeSpans) => {
      const [library] = messages(scopeSpans, 1);
      const scope = text(library, 1);
      return messages(scopeSpans, 2).map((span) => ({ service, scope, ...decodeSpan(span) }));
    });
  });
}

function decodeSpan(span: Fields): Omit<CollectedSpan, "service" | "scope"> {
  const [status] = messages(span, 15);
  return {
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentId: hex(span, 4),
    name: text(span, 5),
    kind: Number(span.get(6)?.[0] ?? 0),
    startNanoseconds: span.get(7)?.[0] as bigint,
    endNanoseconds: span.get(8)?.[0] as bigint,
    attributes: attributesOf(span, 9),
    events: messages(span, 11).map((event) => ({ name: text(event, 2), attributes: attributesOf(event, 3) })),
    links: messages(span, 13).map((link) => hex(link, 1)),
    status: Number(status?.get(3)?.[0] ?? 0),
  };
}

function attributesOf(message: Fields, field: number): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    messages(message, field).map((pair) => [text(pair, 1), anyValue(messages(pair, 2)[0] ?? new Map())]),
  );
}

function anyValue(value: Fields): unknown {
  if (value.has(1)) return text(value, 1);
  if (value.has(2)) return value.get(2)?.[0] === 1n;
  if (value.has(3)) return Number(BigInt.asIntN(64, value.get(3)?.[0] as bigint));
  if (value.has(4)) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(value.get(4)?.[0] as bigint);
    return bytes.readDoubleLE();
  }
  return messages(messages(value, 5)[0] ?? new Map(), 1).map(anyValue);
}

function messages(message: Fields, field: number): readonly Fields[] {
  return (message.get(field) ?? []).map((bytes) => parse(bytes as Buffer));
}

function text(message: Fields | undefined, field: number): string {
  return (message?.get(field)?.[0] ?? "").toString();
}

function hex(message: Fields, field: number): string {
  return ((message.get(field)?.[0] ?? Buffer.alloc(0)) as Buffer).toString("hex");
}

function parse(bytes: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const varint = (): bigint => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    let value: bigint | Buffer;
    switch (tag & 7) {
      case 0:
        value = varint();
        break;
      case 1:
        value = bytes.readBigUInt64LE(at);
        at += 8;
        break;
      case 2: {
        const length = Number(varint());
        if (length > bytes.length - at) throw new Error(`field ${tag >> 3} is longer than its message`);
        value = bytes.subarray(at, at + length);
        at += length;
        break;
      }
      default:
        value = BigInt(bytes.readUInt32LE(at));
        at += 4;
    }
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}
