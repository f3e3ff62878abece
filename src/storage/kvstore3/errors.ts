/** Errors of etcd as errors of the store. */
import { type Revision, StoreError } from "../store.ts";
import { CallError } from "./endpoint.ts";

/** The end of etcd's messages and their codes. */
const CODES: readonly (readonly [text: string, code: ConstructorParameters<typeof StoreError>[0]])[] = [
  ["mvcc: required revision has been compacted", "compacted"],
  ["mvcc: required revision is a future revision", "future-revision"],
  ["mvcc: database space exceeded", "no-space"],
];

export function toStoreError(error: unknown): unknown {
  if (!(error instanceof CallError)) return error;
  const code = CODES.find(([text]) => error.message.includes(text))?.[1] ?? "unavailable";
  return new StoreError(code, `Cannot use the store: ${error.message}`, { cause: error });
}

export function isLeaseNotFound(error: unknown): boolean {
  return error instanceof CallError && error.message.includes("requested lease not found");
}

export function compactedError(from: Revision, compacted: number): StoreError {
  return new StoreError("compacted", `Cannot show revision ${from}: history before ${compacted} is compacted`);
}
