import { Buffer } from "node:buffer";

/**
 * The bytes in an ArrayBuffer of their own, for buffers that are kept. Node allocates small buffers from a shared pool,
 * and each buffer that is kept keeps its whole pool in memory.
 */
export function toUnpooledBuffer(bytes: Uint8Array): Buffer {
  const { buffer, byteOffset, byteLength } = bytes;
  if (buffer.byteLength === byteLength) return Buffer.from(buffer, byteOffset, byteLength);
  const copy = Buffer.allocUnsafeSlow(byteLength);
  copy.set(bytes);
  return copy;
}
