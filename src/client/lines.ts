/** The maximum length of a line: more than the largest watch event. */
const LINE_BYTES_MAX = 64 * 1024 * 1024;

/** The lines of a stream, without line ends. Skips empty lines and an incomplete last line. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let pending: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, start)) {
      pending.push(chunk.subarray(start, end));
      const line = Buffer.concat(pending).toString("utf8").trim();
      pending = [];
      length = 0;
      start = end + 1;
      if (line !== "") yield line;
    }
    if (start === chunk.length) continue;
    pending.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > LINE_BYTES_MAX)
      throw new Error(`Cannot read the stream: a line is longer than ${LINE_BYTES_MAX} bytes`);
  }
}
