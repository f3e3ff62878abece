import { setTimeout as sleep } from "node:timers/promises";

export interface UntilOptions {
  /** 60 s when absent. */
  readonly timeoutMs?: number | undefined;
  /**
   * Runs between two checks, to advance a fake clock for instance. When absent the checks are 2 ms apart at first and
   * 100 ms in the end.
   */
  readonly wait?: (() => Promise<unknown>) | undefined;
}

type Unmet = undefined | false;

const TIMEOUT_MS = 60_000;
const INTERVAL_MIN_MS = 2;
const INTERVAL_MAX_MS = 100;

/**
 * Calls `check` until it returns something other than undefined and false, and resolves with that. Rejects after the
 * timeout with `what`, the condition in words.
 */
export async function until<T>(
  what: string | (() => string),
  check: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, Unmet>> {
  const { timeoutMs = TIMEOUT_MS } = options;
  const deadline = performance.now() + timeoutMs;
  for (let interval = INTERVAL_MIN_MS; ; interval = Math.min(2 * interval, INTERVAL_MAX_MS)) {
    const result = await check();
    if (result !== undefined && result !== false) return result as Exclude<T, Unmet>;
    if (performance.now() > deadline) {
      throw new Error(`Waited ${timeoutMs} ms in vain for: ${typeof what === "string" ? what : what()}`);
    }
    await (options.wait === undefined ? sleep(interval) : options.wait());
  }
}
