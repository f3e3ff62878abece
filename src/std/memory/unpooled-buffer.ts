import { Buffer } from "node:buffer";

/**
 * The bytes in memory that is theirs alone, for those who keep them. Small buffers are cut from a pool that Node shares
 * out, and each that is kept keeps the whole pool, with all that was cut from it for a moment only.
 */
export function toUnpooledBuffer(bytes: Uint8Array): Buffer {
  const { buffer, byteOffset, byteLength } = bytes;
  if (buffer.byteLength === byteLength) return Buffer.from(buffer, byteOffset, byteLength);
  const copy = Buffer.allocUnsafeSlow(byteLength);
  copy.set(bytes);
  return copy;
}
