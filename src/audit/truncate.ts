/** The `--audit-*-truncate-*` flags: bounds of events and batches. */
import type { AuditEvent } from "./event.ts";

export interface TruncateOptions {
  readonly enabled: boolean;
  /** Bytes; a larger event loses request and response, and is dropped when it is still larger. */
  readonly maxEventSize: number;
  /** Bytes; larger batches are split. */
  readonly maxBatchSize: number;
}

const ANNOTATION = "audit.k8s.io/truncated";

export function truncate(
  events: readonly AuditEvent[],
  { enabled, maxEventSize, maxBatchSize }: TruncateOptions,
  sizeOf: (event: AuditEvent) => number,
): { readonly batches: readonly (readonly AuditEvent[])[]; readonly dropped: number } {
  if (!enabled) return { batches: [events], dropped: 0 };
  const batches: AuditEvent[][] = [];
  let batch: AuditEvent[] = [];
  let bytes = 0;
  let dropped = 0;
  for (const event of events) {
    const isLarge = sizeOf(event) > maxEventSize;
    const kept = isLarge ? withoutObjects(event) : event;
    const size = isLarge ? sizeOf(kept) : sizeOf(event);
    if (size > maxEventSize) {
      dropped++;
      continue;
    }
    if (batch.length > 0 && bytes + size > maxBatchSize) {
      batches.push(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(kept);
    bytes += size;
  }
  if (batch.length > 0) batches.push(batch);
  return { batches, dropped };
}

function withoutObjects(event: AuditEvent): AuditEvent {
  const annotations = new Map([...event.annotations, [ANNOTATION, "true"]]);
  return { ...event, requestObject: undefined, responseObject: undefined, annotations };
}
