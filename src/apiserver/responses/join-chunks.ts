const CHUNK_BYTES = 64 * 1024;

/**
 * Joins small buffers to chunks of about 64 KiB: writing a chunk costs more than copying it, and a single buffer would
 * need contiguous memory.
 */
export function joinChunks(chunks: Iterable<Uint8Array>): readonly Uint8Array[] {
  return [...joined(chunks)];
}

function* joined(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  let pending: Uint8Array[] = [];
  let length = 0;
  for (const chunk of chunks) {
    pending.push(chunk);
    length += chunk.length;
    if (length < CHUNK_BYTES) continue;
    yield pending.length === 1 ? chunk : Buffer.concat(pending, length);
    pending = [];
    length = 0;
  }
  if (length > 0) yield Buffer.concat(pending, length);
}
