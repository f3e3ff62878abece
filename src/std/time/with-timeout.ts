import type { Clock } from "./clock.ts";

/**
 * Resolves or rejects as `work` does; when that takes longer, rejects with `message` and the time. Does not stop the
 * work.
 */
export async function withTimeout<T>(
  clock: Clock,
  milliseconds: number,
  work: Promise<T>,
  message: string,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = clock.timer(milliseconds, () => late.reject(new Error(`${message} within ${milliseconds} ms`)));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.cancel();
  }
}
