/** Reads bodies of requests within the limits of their senders. */
import { UNAUTHENTICATED } from "../../auth/user.ts";
import { readBody } from "../../http/body.ts";
import { LARGE_BYTES, TimeSlice } from "../../std/async/time-slice.ts";
import { addEvent } from "../../tracing/span.ts";
import type { RequestContext } from "../request/request-context.ts";
import { reserveMemory } from "../request/request-memory.ts";

/** Kubernetes' limit. */
const BODY_BYTES_MAX = 3 * 2 ** 20;
/** Bodies that are not stored: reviews, which every authenticated user may send, and options. */
export const UNSTORED_BYTES_MAX = 256 * 1024;
/** Bodies of users that are not authenticated. */
const ANONYMOUS_BYTES_MAX = 64 * 1024;

/**
 * Throws a 413 for a body that is longer than `max`, or than the user may send, and a 429 while too many large bodies
 * are handled.
 */
export async function readLimitedBody({ request, user }: RequestContext, max = BODY_BYTES_MAX): Promise<Buffer> {
  const isAnonymous = user === undefined || user.groups.includes(UNAUTHENTICATED);
  const body = await readBody(request, isAnonymous ? Math.min(max, ANONYMOUS_BYTES_MAX) : max);
  addEvent("limitedReadBody succeeded", { len: body.length });
  await reserveMemory(request, body.length);
  if (body.length > LARGE_BYTES) await new TimeSlice().end();
  return body;
}
