import { setTimeout as sleep } from "node:timers/promises";

/** A monitor of delays that has just been enabled measures from one of its timers to the next. */
const MONITOR_STARTED_MS = 50;

/** Keeps the event loop from turning for this time, when a monitor of its delays has begun to measure. */
export async function blockEventLoop(milliseconds: number): Promise<void> {
  await sleep(MONITOR_STARTED_MS);
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}
