const CHUNK_BYTES = 64 * 1024;

/**
 * Joins small buffers to chunks of about 64 KiB: writing a chunk costs more than copying it, and a single buffer would
 * need contiguous memory.
 */
export function joinChunks(chunks: readonly Uint8Array[]): readonly Uint8Array[] {
  const result: Uint8Array[] = [];
  let start = 0;
  let length = 0;
  for (const [index, chunk] of chunks.entries()) {
    length += chunk.length;
    if (length < CHUNK_BYTES) continue;
    result.push(Buffer.concat(chunks.slice(start, index + 1), length));
    start = index + 1;
    length = 0;
  }
  if (length > 0) result.push(Buffer.concat(chunks.slice(start), length));
  return result;
}
