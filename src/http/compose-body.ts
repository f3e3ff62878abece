import { compose, type Duplex, type Readable } from "node:stream";

/**
 * The body after the transforms. The reader gets their errors. Each also has a listener that ignores them: the reader
 * may stop at any time, and an error of a stream without a listener ends the process.
 */
export function composeBody(body: AsyncIterable<Uint8Array>, ...transforms: readonly [...Duplex[], Duplex]): Readable {
  const composed = compose(body, ...transforms);
  for (const stream of [...transforms, composed]) stream.on("error", ignore);
  return composed;
}

function ignore(): void {}
