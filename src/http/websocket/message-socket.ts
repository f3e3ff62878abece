/** A WebSocket connection of a server, for messages in both directions. */
import { PassThrough, type Writable } from "node:stream";
import { copiedBytes } from "../../std/memory/collect-copied.ts";
import { waitForDrain } from "../upgrade/forward-upgrade.ts";
import { readChunks } from "../upgrade/read-chunks.ts";
import { CLOSE_CODES, closeFrame, FrameError, frameHead, OPCODES, WebSocketReader } from "./frames.ts";

export interface MessageHandler {
  /**
   * A part of a message as it arrived; the connection is not read while the promise is pending. False ends the
   * connection with a close frame.
   */
  readonly data: (part: MessagePart) => Promise<boolean> | boolean;
}

export interface MessagePart {
  readonly text: boolean;
  readonly first: boolean;
  readonly last: boolean;
  readonly data: Buffer;
}

export class MessageSocket {
  /** What the connection sends: the body of the 101. */
  readonly body: AsyncIterable<Uint8Array>;
  readonly #output: Writable;
  readonly #received: AsyncIterable<Uint8Array>;

  constructor(received: AsyncIterable<Uint8Array>) {
    const output = new PassThrough({ highWaterMark: OUTPUT_BYTES_MAX });
    this.#received = received;
    this.#output = output;
    this.body = output;
  }

  /** Reads until the client closes, or `close`. Answers pings and the client's close frame. Never rejects. */
  async run(handler: MessageHandler): Promise<void> {
    const reader = new WebSocketReader();
    try {
      await readChunks(this.#received, async (chunk) => {
        copiedBytes.add(chunk.length);
        for (const frame of reader.read(chunk)) {
          if (frame.type === "close") return false;
          if (frame.type === "ping") await this.#write(OPCODES.pong, frame.payload);
          if (frame.type === "data" && !(await handler.data(frame))) return false;
          if (this.#output.writableEnded) return false;
        }
        return true;
      });
    } catch (error) {
      if (error instanceof FrameError) this.close(CLOSE_CODES.protocolError);
    } finally {
      this.close();
    }
  }

  /** Sends a message of these parts; resolves when the connection takes more. */
  async send(type: "text" | "binary", ...parts: readonly Uint8Array[]): Promise<void> {
    await this.#write(OPCODES[type], ...parts);
  }

  /** Sends a close frame and ends the connection. */
  close(code: number = CLOSE_CODES.normal): void {
    if (!this.#output.writableEnded && !this.#output.destroyed) this.#output.end(closeFrame(code));
  }

  async #write(opcode: number, ...parts: readonly Uint8Array[]): Promise<void> {
    const output = this.#output;
    if (output.writableEnded || output.destroyed) return;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    copiedBytes.add(length);
    output.write(Buffer.concat([frameHead(opcode, length), ...parts]));
    await waitForDrain(output);
  }
}

const OUTPUT_BYTES_MAX = 64 * 1024;
