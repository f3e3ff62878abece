import { setTimeout as sleep } from "node:timers/promises";

/** A monitor of delays that has just been enabled measures from one of its timers to the next. */
const MONITOR_STARTED_MS = 50;

/** The monitor records a delay with its next timer. */
const MONITOR_RECORDED_MS = 30;

/** Keeps the event loop from turning for this time. A monitor of its delays has begun to measure, and records it. */
export async function blockEventLoop(milliseconds: number): Promise<void> {
  await sleep(MONITOR_STARTED_MS);
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
  await sleep(MONITOR_RECORDED_MS);
}
