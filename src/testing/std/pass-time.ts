import { setTimeout as sleep } from "node:timers/promises";
import type { FakeClock } from "./fake-clock.ts";

const ROUNDS = 12;

/**
 * Advances the clock, then lets chains of requests to a server in memory end. They need real time: signatures are
 * verified in other threads.
 */
export async function passTime(clock: FakeClock, milliseconds: number): Promise<void> {
  await clock.advance(milliseconds);
  for (let round = 0; round < ROUNDS; round++) {
    await sleep(1);
    await clock.advance(0);
  }
}
