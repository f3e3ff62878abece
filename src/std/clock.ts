/** Time as a parameter: whatever waits, times out or reads the hour is handed a `Clock`. */
export interface Clock {
  /** Milliseconds since 1970, as the host believes. */
  now(): number;
  /** Milliseconds that only ever grow; for measuring intervals, whatever the host's clock does. */
  monotonic(): number;
  /** Resolves after `milliseconds`; rejects with the signal's reason if that aborts first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `milliseconds`; the returned timer's owner cancels it. */
  timer(milliseconds: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}
