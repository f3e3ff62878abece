import { hash, timingSafeEqual } from "node:crypto";

/**
 * Whether two secrets are equal. The time it takes depends neither on what they have in common nor on the length of
 * the stored one. Secrets are compared here only, or looked up by their digests.
 */
export function constantTimeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean {
  return timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
}
