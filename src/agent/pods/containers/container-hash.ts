import type { Container } from "../../../api/core/container/schema.ts";

/**
 * A running container whose hash differs from the spec's must be replaced. The hash covers only fields that cannot
 * change in place, name and image as in Kubernetes 1.33, so that a new agent version or a new default restarts no
 * container. FNV-1a over JSON, in hex.
 */
export function containerHash(container: Container): string {
  const text = JSON.stringify({ image: container.image ?? "", name: container.name });
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash.toString(16);
}
