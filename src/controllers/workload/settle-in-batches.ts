/** Requests at a time: each takes some of the turn of the event loop in which it begins. */
const BATCH = 100;

/** As `Promise.allSettled` of the calls, a batch after the other: a job may have tens of thousands of pods. */
export async function settleInBatches<T>(
  items: readonly T[],
  call: (item: T) => Promise<void>,
): Promise<readonly PromiseSettledResult<void>[]> {
  const results: PromiseSettledResult<void>[] = [];
  for (let from = 0; from < items.length; from += BATCH) {
    const batch = await Promise.allSettled(items.slice(from, from + BATCH).map(call));
    for (const result of batch) results.push(result);
  }
  return results;
}
