/** Detects changed files, also those replaced by a rename or through a symbolic link. */
import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import type { Clock, Timer } from "../time/clock.ts";

/** A certificate and its key are two files: the check waits until both are written. */
const SETTLE_MS = 100;
/** Some file systems send no events, and a directory may be replaced as a whole. */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Calls `check` shortly after a change in the directories of the files, and once a minute; `check` finds out itself
 * whether what it reads has changed. It watches directories because a watched file is one inode: when `..data` is
 * replaced, a watched file gets no event.
 */
export function watchFiles(files: readonly string[], clock: Clock, check: () => void): Disposable {
  return new Watch(new Set(files.map((file) => dirname(file))), clock, check);
}

class Watch implements Disposable {
  readonly #directories: ReadonlySet<string>;
  readonly #clock: Clock;
  readonly #check: () => void;
  #watchers: readonly FSWatcher[];
  #settle: Timer | undefined;
  #next: Timer;

  constructor(directories: ReadonlySet<string>, clock: Clock, check: () => void) {
    this.#directories = directories;
    this.#clock = clock;
    this.#check = check;
    this.#watchers = this.#open();
    this.#next = this.#schedule();
  }

  [Symbol.dispose](): void {
    this.#next.cancel();
    this.#settle?.cancel();
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #schedule(): Timer {
    return this.#clock.timer(CHECK_INTERVAL_MS, () => {
      for (const watcher of this.#watchers) watcher.close();
      this.#watchers = this.#open();
      this.#next = this.#schedule();
      this.#check();
    });
  }

  #open(): readonly FSWatcher[] {
    return [...this.#directories].flatMap((directory) => {
      try {
        const watcher = watch(directory, { persistent: false }, () => this.#changed());
        watcher.on("error", () => watcher.close());
        return [watcher];
      } catch {
        // The directory is missing or the system has no watches left: the next check opens it again.
        return [];
      }
    });
  }

  #changed(): void {
    this.#settle ??= this.#clock.timer(SETTLE_MS, () => {
      this.#settle = undefined;
      this.#check();
    });
  }
}
