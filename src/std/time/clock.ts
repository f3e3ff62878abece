/** Time as a parameter: code that waits, times out or reads the time takes a `Clock`. */
export interface Clock {
  /** Milliseconds since 1970 by the host's clock. */
  now(): number;
  /** Milliseconds that never go back, for durations: independent of changes to the host's clock. */
  monotonic(): number;
  /** Resolves after `milliseconds`; rejects with the signal's reason if that aborts first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `milliseconds`, unless the returned timer is cancelled. */
  timer(milliseconds: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Longest delay Node's timers take; longer ones are reached in steps. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** The host's clock. Nothing else in the project calls `Date.now` or `setTimeout`. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (milliseconds, signal) => sleepOn(systemClock, milliseconds, signal),
  timer(milliseconds, callback) {
    let handle: NodeJS.Timeout;
    const arm = (left: number): void => {
      const step = Math.min(Math.max(left, 0), TIMER_MAX_MS);
      handle = setTimeout(() => (left > step ? arm(left - step) : callback()), step);
    };
    arm(milliseconds);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** `Clock.sleep` in terms of `Clock.timer`, for implementations of `Clock`. */
export function sleepOn(clock: Pick<Clock, "timer">, milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const timer = clock.timer(milliseconds, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    const abort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}
