/**
 * Messages between a thread that owns a store and one that uses it. Each message is an array of requests or replies, in
 * order. Values have memory of their own: a message contains a copy of the whole memory that a value is part of.
 */
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";
import {
  type KeyValue,
  type Range,
  type Revision,
  type ScanPart,
  StoreError,
  type StoreErrorCode,
  type StoreStatus,
  type WatchBatch,
  type WatchEvent,
} from "../store.ts";

/** `id` is that of the call or the stream, which the client chooses. */
export type Request =
  | { readonly op: "get"; readonly id: number; readonly key: string; readonly revision: Revision | undefined }
  | ListRequest
  | WriteRequest
  | { readonly op: "delete"; readonly id: number; readonly key: string; readonly expected: Revision }
  | { readonly op: "compact"; readonly id: number; readonly before: Revision }
  | { readonly op: "scan"; readonly id: number; readonly range: Range; readonly revision: Revision | undefined }
  | { readonly op: "watch"; readonly id: number; readonly range: Range; readonly from: Revision }
  /** The client has processed so many parts of a stream. */
  | { readonly op: "processed"; readonly id: number; readonly parts: number }
  | { readonly op: "cancel"; readonly id: number };

interface ListRequest {
  readonly op: "list";
  readonly id: number;
  readonly range: Range;
  readonly revision: Revision | undefined;
  readonly limit: number | undefined;
}

interface WriteRequest {
  readonly op: "write";
  readonly id: number;
  readonly key: string;
  readonly value: Uint8Array;
  /** 0: creates the key. */
  readonly expected: Revision;
  readonly ttlSeconds: number | undefined;
}

export type Reply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: PortableError }
  | { readonly id: number; readonly part: ScanPart | WatchBatch }
  | { readonly id: number; readonly end: true }
  | { readonly status: StoreStatus };

/** An error without its class, which messages do not keep. */
export interface PortableError {
  /** Undefined: a RangeError. */
  readonly code: StoreErrorCode | undefined;
  readonly message: string;
  readonly current: KeyValue | undefined;
  readonly cause: string | undefined;
}

/** Parts of a stream that are sent before the client has processed the first of them. */
export const STREAM_PARTS = 8;

/** An error that is of no known class becomes `unavailable`. */
export function toPortableError(error: unknown): PortableError {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  const causeText = cause === undefined ? undefined : String(cause);
  if (error instanceof RangeError) return { code: undefined, message, current: undefined, cause: causeText };
  if (!(error instanceof StoreError)) return { code: "unavailable", message, current: undefined, cause: causeText };
  return { code: error.code, message, current: error.current && toPortableItem(error.current), cause: causeText };
}

export function fromPortableError({ code, message, current, cause }: PortableError): Error {
  if (code === undefined) return new RangeError(message, { cause });
  return new StoreError(code, message, { current: current && restoreItem(current), cause });
}

/** The other thread cannot read the value again. */
export function toPortableItem(item: KeyValue): KeyValue {
  return { ...item, value: toUnpooledBuffer(item.value), isPinned: true };
}

/** The received values as Buffers, which messages turn into plain arrays of bytes. */
export function restoreItem(item: KeyValue): KeyValue {
  const { buffer, byteOffset, byteLength } = item.value;
  return { ...item, value: Buffer.from(buffer, byteOffset, byteLength) };
}

export function restoreEvent(event: WatchEvent): WatchEvent {
  if (event.type === "delete") return { ...event, previous: restoreItem(event.previous) };
  return { ...event, item: restoreItem(event.item), previous: event.previous && restoreItem(event.previous) };
}

export function toPortableEvent(event: WatchEvent): WatchEvent {
  if (event.type === "delete") return { ...event, previous: toPortableItem(event.previous) };
  return { ...event, item: toPortableItem(event.item), previous: event.previous && toPortableItem(event.previous) };
}
