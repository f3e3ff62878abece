const CHUNK_BYTES = 64 * 1024;

/**
 * Copies many small buffers into few: a stream costs more per piece than copying does, and one buffer for all would
 * have to be found in one piece of memory.
 */
export function joined(pieces: readonly Uint8Array[]): readonly Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let start = 0;
  let length = 0;
  for (const [index, piece] of pieces.entries()) {
    length += piece.length;
    if (length < CHUNK_BYTES) continue;
    chunks.push(Buffer.concat(pieces.slice(start, index + 1), length));
    start = index + 1;
    length = 0;
  }
  if (length > 0) chunks.push(Buffer.concat(pieces.slice(start), length));
  return chunks;
}
