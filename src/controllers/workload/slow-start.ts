/**
 * Calls in batches of 1, 2, 4, … and stops after a batch with a failure, so that a mass creation that fails (a quota)
 * costs few requests. Returns how many succeeded, and the first error.
 */
export async function slowStart(
  count: number,
  call: () => Promise<void>,
): Promise<{ readonly successes: number; readonly error?: unknown }> {
  let successes = 0;
  for (let remaining = count, size = 1; remaining > 0; ) {
    const batch = Math.min(size, remaining);
    const results = await Promise.allSettled(Array.from({ length: batch }, call));
    successes += results.filter(({ status }) => status === "fulfilled").length;
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) return { successes, error: failed.reason };
    remaining -= batch;
    size *= 2;
  }
  return { successes };
}
