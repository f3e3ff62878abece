/** One watch event; larger objects than the store takes are no events. */
const LINE_BYTES_MAX = 64 * 1024 * 1024;

/** The lines of a stream, without their ends. Empty ones are left out, as is a last one that was cut off. */
export async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let pending: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    let start = 0;
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, start)) {
      pending.push(piece.subarray(start, end));
      const line = Buffer.concat(pending).toString("utf8").trim();
      pending = [];
      length = 0;
      start = end + 1;
      if (line !== "") yield line;
    }
    if (start === piece.length) continue;
    pending.push(piece.subarray(start));
    length += piece.length - start;
    if (length > LINE_BYTES_MAX)
      throw new Error(`Cannot read the stream: a line is longer than ${LINE_BYTES_MAX} bytes`);
  }
}
