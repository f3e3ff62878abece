import { hash, timingSafeEqual } from "node:crypto";

/**
 * Whether two secrets are the same. How long it takes tells nothing of what they have in common, nor of how long the
 * one is that is not known. Wherever secrets are compared, it is done here, or they are looked up by their digests.
 */
export function constantTimeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean {
  return timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
}
