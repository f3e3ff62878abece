/** Plays the streaming server of a container runtime over SPDY: its negotiation, and commands that a test defines. */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { Handler, HttpRequest } from "../../http/message.ts";
import { headerValues } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { SpdyConnection, type SpdyStream } from "../../http/spdy/connection.ts";

const PROTOCOLS = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];

export interface PlayedCommand {
  readonly request: HttpRequest;
  readonly protocol: string;
  /** By stream type. */
  readonly streams: ReadonlyMap<string, SpdyStream>;
  /** The next chunk of a stream; undefined after its end. */
  readonly read: (type: string) => Promise<Buffer | undefined>;
}

export interface PlayedStreamsOptions {
  /** The stream types that start the command. */
  readonly expects: readonly string[];
  /** Resolves with the text of the error stream; undefined closes the connection without one. */
  readonly run: (command: PlayedCommand) => Promise<string | undefined>;
}

export function playStreams({ expects, run }: PlayedStreamsOptions): Handler {
  return async (request) => {
    const offered = headerValues(request, "x-stream-protocol-version").flatMap((value) => value.split(/, */));
    const protocol = PROTOCOLS.find((name) => offered.includes(name));
    if (protocol === undefined) return textResponse(403, `unable to upgrade: client supports [${offered}]\n`);
    const output = new PassThrough();
    const streams = new Map<string, SpdyStream>();
    const chunks = new Map<string, PassThrough>();
    const connection = new SpdyConnection({
      input: request.body,
      output,
      role: "server",
      onStream: (stream) => {
        const { streamtype = "" } = stream.headers;
        const received = new PassThrough({ highWaterMark: 1 });
        streams.set(streamtype, stream);
        chunks.set(streamtype, received);
        if (expects.every((type) => streams.has(type))) setImmediate(() => void start());
        return {
          data: async (chunk) => {
            if (!received.write(Buffer.from(chunk))) await once(received, "drain");
          },
          end: () => received.end(),
        };
      },
    });
    const read = async (type: string): Promise<Buffer | undefined> => {
      for await (const chunk of chunks.get(type)!.iterator({ destroyOnReturn: false })) return chunk as Buffer;
      return undefined;
    };
    const start = async (): Promise<void> => {
      const result = await run({ request, protocol, streams, read });
      if (result !== undefined) {
        for (const type of ["stdout", "stderr"]) await streams.get(type)?.end();
        await streams.get("error")?.write(Buffer.from(result));
        await streams.get("error")?.reset(5);
        connection.goAway();
      }
      connection.close();
    };
    void connection.run().catch(() => {});
    return { status: 101, headers: { upgrade: "SPDY/3.1", "x-stream-protocol-version": protocol }, body: output };
  };
}
