import { Readable } from "node:stream";

/** False ends the reading. */
type Continue = boolean | undefined;
/** The source is not read while the promise is pending. */
export type ChunkHandler = (chunk: Uint8Array) => Continue | Promise<Continue>;

/**
 * Calls the handler with each chunk. No iterator keeps the last chunk of a connection while nothing arrives: each chunk
 * has a buffer of 64 KiB. Resolves when the source ends or closes; rejects with its error or that of the handler.
 */
export async function readChunks(source: AsyncIterable<Uint8Array>, handle: ChunkHandler): Promise<void> {
  if (source instanceof Readable) return await readConnection(source, handle);
  for await (const chunk of source) if ((await handle(chunk)) === false) return;
}

function readConnection(source: Readable, handle: ChunkHandler): Promise<void> {
  return new Promise((resolve, reject) => {
    let isHandling = false;
    /** How the source ended while a chunk was handled. */
    let ended: { readonly error: Error | undefined } | undefined;
    const stop = (error?: unknown): void => {
      source.off("data", receive);
      source.off("end", end);
      source.off("close", close);
      source.off("error", end);
      source.pause();
      if (error === undefined) resolve();
      else reject(error);
    };
    const proceed = (continues: Continue): void => {
      isHandling = false;
      if (ended !== undefined) stop(ended.error);
      else if (continues === false) stop();
      else source.resume();
    };
    const receive = (chunk: Uint8Array): void => {
      try {
        const handling = handle(chunk);
        if (handling === false) stop();
        if (typeof handling !== "object") return;
        isHandling = true;
        source.pause();
        handling.then(proceed, stop);
      } catch (error) {
        stop(error);
      }
    };
    const end = (error?: Error): void => {
      if (isHandling) ended ??= { error };
      else stop(error);
    };
    // A socket passes whether there was an error, which was reported before.
    const close = (): void => end();
    if (source.destroyed || source.readableEnded) return resolve();
    source.on("data", receive);
    source.once("end", end);
    source.once("close", close);
    source.once("error", end);
    source.resume();
  });
}
