/** Decompresses Snappy's block format, by which LevelDB compresses the blocks of a table. */
import { Decoder } from "./encoding.ts";

/** Throws a RangeError for data of another format. */
export function decompressSnappy(compressed: Buffer): Buffer {
  const decoder = new Decoder(compressed);
  const length = decoder.varint();
  // The format repeats at most 64 bytes for each 2 bytes, so a larger length is wrong.
  if (length > 64 * compressed.length) throw new RangeError("the length of compressed data is wrong");
  const output = Buffer.alloc(length);
  let end = 0;
  while (!decoder.done) {
    const tag = decoder.byte();
    if ((tag & 3) === 0) {
      const literal = decoder.bytes(literalLength(tag, decoder));
      if (end + literal.length > length) throw new RangeError("compressed data are too long");
      literal.copy(output, end);
      end += literal.length;
      continue;
    }
    const { count, distance } = readCopy(tag, decoder);
    if (distance === 0 || distance > end || end + count > length) throw new RangeError("compressed data are wrong");
    // The source may overlap the target: then the bytes repeat.
    for (const stop = end + count; end < stop; end++) output[end] = output[end - distance]!;
  }
  if (end !== length) throw new RangeError("compressed data end early");
  return output;
}

function literalLength(tag: number, decoder: Decoder): number {
  const short = tag >>> 2;
  return 1 + (short < 60 ? short : decoder.bytes(short - 59).readUIntLE(0, short - 59));
}

function readCopy(tag: number, decoder: Decoder): { readonly count: number; readonly distance: number } {
  if ((tag & 3) === 1) return { count: 4 + ((tag >>> 2) & 7), distance: ((tag >>> 5) << 8) | decoder.byte() };
  const size = (tag & 3) === 2 ? 2 : 4;
  return { count: 1 + (tag >>> 2), distance: decoder.bytes(size).readUIntLE(0, size) };
}
