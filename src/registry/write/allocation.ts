import type { ApiObject } from "../../api/kind.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Allocation, Allocator } from "../allocator.ts";
import type { WriteRequest } from "./request.ts";

/** Allocates for one attempt of a write; rolls back first what the attempt before it allocated. */
export type Allocate<T> = (next: T, previous: T | undefined) => MaybePromise<T>;

/**
 * Runs a write of one or more attempts; commits what the last one allocated, or rolls it back when the write fails.
 * Writes through subresources allocate nothing.
 */
export function withAllocation<T extends ApiObject>(
  request: WriteRequest<T>,
  write: (allocate: Allocate<T>) => Promise<T>,
): Promise<T> {
  const { allocator } = request.registry;
  const allocates = allocator !== undefined && request.options.subresourceStrategy === undefined;
  return allocates ? writeAndCommit(request, allocator, write) : write(allocateNothing);
}

function allocateNothing<T>(next: T): T {
  return next;
}

async function writeAndCommit<T extends ApiObject>(
  { scope, options }: WriteRequest<T>,
  allocator: Allocator<T>,
  write: (allocate: Allocate<T>) => Promise<T>,
): Promise<T> {
  let held: Allocation<T> | undefined;
  const rollback = async (): Promise<void> => {
    const before = held;
    held = undefined;
    await before?.rollback();
  };
  let written: T;
  try {
    written = await write(async (next, previous) => {
      await rollback();
      held = await allocator.allocate(scope, next, previous, options.dryRun === true);
      return held.object;
    });
  } catch (error) {
    await rollback();
    throw error;
  }
  await (held as Allocation<T> | undefined)?.commit(written);
  return written;
}
