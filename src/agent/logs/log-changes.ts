/**
 * Changes in the directories of container logs, for those who follow a log. However many follow, a directory has one
 * watcher (inotify) and there is one timer. A watcher reports one change and is closed, so that a container that writes
 * a million lines in a second causes no million events.
 */
import { type FSWatcher, type Stats, watch } from "node:fs";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { type FileStats, SharedReads, statIfPresent } from "./shared-reads.ts";

/** How often the ends of containers are looked for, which change no file. */
const CHECK_MS = 250;
/** Between a change and the wait for the next: what a container writes meanwhile is read at once. */
const PAUSE_MS = 25;

interface Waiter {
  readonly isOver: () => boolean;
  readonly wake: () => void;
}

/** One change of a directory. */
export class LogChange implements FileStats {
  readonly waiters = new Set<Waiter>();
  readonly #stats = new Map<string, Promise<Stats | undefined>>();
  readonly #watcher: FSWatcher | undefined;
  #isOver = false;

  constructor(directory: string, closed: () => void) {
    const end = (): void => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#watcher?.close();
      closed();
      for (const { wake } of this.waiters) wake();
    };
    this.close = end;
    this.#watcher = openWatcher(directory, end);
  }

  /** Wakes all that wait. */
  readonly close: () => void;

  /** Read once, after the watcher was opened: what is written later is a change. */
  stat(path: string): Promise<Stats | undefined> {
    const existing = this.#stats.get(path);
    if (existing !== undefined) return existing;
    const found = statIfPresent(path);
    this.#stats.set(path, found);
    return found;
  }

  get hasHappened(): boolean {
    return this.#isOver;
  }

  /** Without one, as when the system has no watches left, each check of the timer counts as a change. */
  get isWatched(): boolean {
    return this.#watcher !== undefined;
  }
}

function openWatcher(directory: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, changed);
    watcher.on("error", changed);
    return watcher;
  } catch {
    return undefined;
  }
}

export class LogChanges {
  readonly reads = new SharedReads();
  readonly #clock: Clock;
  readonly #pending = new Map<string, LogChange>();
  #timer: Timer | undefined;
  #pause: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** At most `PAUSE_MS`: those who pause at the same time share one timer. */
  pause(): Promise<void> {
    this.#pause ??= this.#clock.sleep(PAUSE_MS).finally(() => {
      this.#pause = undefined;
    });
    return this.#pause;
  }

  /** The next change of the directory from now on. The caller passes it to `wait`. */
  expect(directory: string): LogChange {
    const pending = this.#pending.get(directory);
    if (pending !== undefined) return pending;
    const change = new LogChange(directory, () => {
      if (this.#pending.get(directory) === change) this.#pending.delete(directory);
    });
    this.#pending.set(directory, change);
    return change;
  }

  /** Resolves with the change, when `isOver`, or when the signal aborts. */
  async wait(change: LogChange, isOver: () => boolean, signal: AbortSignal): Promise<void> {
    if (change.hasHappened || signal.aborted) {
      this.release(change);
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const waiter = { isOver, wake };
    signal.addEventListener("abort", wake, { once: true });
    change.waiters.add(waiter);
    this.#schedule();
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", wake);
      change.waiters.delete(waiter);
      this.release(change);
    }
  }

  /** Closes the watcher of a change without waiters. */
  release(change: LogChange): void {
    if (change.waiters.size === 0) change.close();
  }

  #schedule(): void {
    this.#timer ??= this.#clock.timer(CHECK_MS, () => {
      this.#timer = undefined;
      const pending = [...this.#pending.values()];
      for (const change of pending) {
        if (!change.isWatched) change.close();
        else for (const { isOver, wake } of change.waiters) if (isOver()) wake();
      }
      if (pending.some(({ waiters }) => waiters.size > 0)) this.#schedule();
    });
  }
}
