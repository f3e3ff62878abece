import type { ApiObject } from "../../api/kind.ts";
import type { Allocation, Allocator } from "../allocator.ts";
import type { WriteRequest } from "./request.ts";

/** Allocates for one attempt of a write; rolls back first what the attempt before it allocated. */
export type Allocate<T> = (next: T, previous: T | undefined) => Promise<T>;

/** The step of the pipeline. Writes through subresources allocate nothing. */
export function allocate<T extends ApiObject>(
  { options }: WriteRequest<T>,
  next: T,
  previous: T | undefined,
  allocator: Allocate<T> | undefined,
): T | Promise<T> {
  return allocator === undefined || options.subresourceStrategy !== undefined ? next : allocator(next, previous);
}

/** Runs a write of one or more attempts; commits what the last one allocated, or rolls it back when the write fails. */
export function withAllocation<T extends ApiObject>(
  request: WriteRequest<T>,
  write: (allocate: Allocate<T> | undefined) => Promise<T>,
): Promise<T> {
  const { allocator } = request.registry;
  return allocator === undefined ? write(undefined) : writeAndCommit(request, allocator, write);
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
