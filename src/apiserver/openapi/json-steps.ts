/** OpenAPI documents as JSON, in steps: one takes many milliseconds. */
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Steps } from "../../std/async/steps.ts";

/** Characters that are written together. */
const CHUNK_LENGTH = 64 * 1024;

/** The value as JSON, in a step for each member down to `depth`. */
export function* encodeJson(value: object, depth: number): Steps<Buffer> {
  const chunks: Buffer[] = [];
  yield* writeJson(value, depth, (chunk) => void chunks.push(Buffer.from(chunk)));
  return Buffer.concat(chunks);
}

/** Calls `write` with parts of the text, which is never in memory as a whole. */
export function* writeJson(value: object, depth: number, write: (chunk: string) => void): Steps<void> {
  let pending = "";
  yield* writeMembers(value, depth, (text) => {
    pending += text;
    if (pending.length < CHUNK_LENGTH) return;
    write(pending);
    pending = "";
  });
  write(pending);
}

function* writeMembers(value: object, depth: number, write: (text: string) => void): Steps<void> {
  let separator = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    write(`${separator}${JSON.stringify(name)}:`);
    separator = ",";
    if (depth > 1 && isPlainObject(member)) yield* writeMembers(member, depth - 1, write);
    else write(stringifyExact(member));
    yield;
  }
  write(separator === "{" ? "{}" : "}");
}
