import type { Clock } from "./clock.ts";

/**
 * What `work` comes to, unless that takes longer: then rejects with `message` and the time. The work is not stopped.
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
