/** Objects that hold something no two may have: a seam for kinds whose objects do, and what a write does with it. */
import type { ApiObject } from "../../api/kind.ts";
import type { Scope } from "../registry.ts";

/** Gives objects of a kind their share of what they cannot have twice: addresses, ports. */
export interface Allocator<T extends ApiObject = ApiObject> {
  /**
   * Called with an object before its strategy sees it; `previous` is set where an object is changed. A dry run takes
   * nothing. Throws a `StatusError` for what cannot be had.
   */
  allocate(scope: Scope, next: T, previous: T | undefined, dryRun: boolean): Promise<Allocation<T>>;
  /** Called with an object that is gone. Does not throw: what it cannot free is freed at the next start. */
  release(scope: Scope, object: T): Promise<void>;
}

/** What was taken for one write. One of its functions is called, once. Neither throws. */
export interface Allocation<T extends ApiObject = ApiObject> {
  readonly object: T;
  /** The object was written: what it holds no longer is free again. */
  keep(written: T): Promise<void>;
  /** The object was not written: what was taken for it is free again. */
  giveBack(): Promise<void>;
}

/** The object with its share; called again, it first gives back what it took before. */
export type Allocate<T> = (next: T, previous: T | undefined) => Promise<T>;

export interface AllocationScope<T extends ApiObject> {
  readonly allocator: Allocator<T> | undefined;
  readonly scope: Scope;
  readonly dryRun: boolean;
}

/** Runs `write`, whose attempts may take something, and keeps or gives back what the last one took. */
export async function withAllocation<T extends ApiObject>(
  { allocator, scope, dryRun }: AllocationScope<T>,
  write: (allocate: Allocate<T> | undefined) => Promise<T>,
): Promise<T> {
  if (allocator === undefined) return await write(undefined);
  let held: Allocation<T> | undefined;
  const giveBack = async (): Promise<void> => {
    const before = held;
    held = undefined;
    await before?.giveBack();
  };
  let written: T;
  try {
    written = await write(async (next, previous) => {
      await giveBack();
      held = await allocator.allocate(scope, next, previous, dryRun);
      return held.object;
    });
  } catch (error) {
    await giveBack();
    throw error;
  }
  await (held as Allocation<T> | undefined)?.keep(written);
  return written;
}
