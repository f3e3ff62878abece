/** Detects changed files, also those replaced by a rename or through a symbolic link. */
import { type FSWatcher, statSync, watch } from "node:fs";
import { dirname } from "node:path";
import type { Clock, Timer } from "../time/clock.ts";

/** A certificate and its key are two files: the check waits until both are written. */
const SETTLE_MS = 100;
/** Some file systems send no events, and a directory may be replaced as a whole. */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Calls `check` shortly after a change of the files, and once a minute; `check` finds out itself whether what it reads
 * has changed. It watches directories because a watched file is one inode: when `..data` is replaced, a watched file
 * gets no event. Other files there, such as a log that `check` writes to, do not cause a call.
 */
export function watchFiles(files: readonly string[], clock: Clock, check: () => void): Disposable {
  return new Watch(new Set(files.map((file) => dirname(file))), clock, check, () => identify(files));
}

/** Calls `check` shortly after any change in the directory, and once a minute. */
export function watchDirectory(directory: string, clock: Clock, check: () => void): Disposable {
  return new Watch(new Set([directory]), clock, check, undefined);
}

/** Differs after each write and replacement of a file. */
function identify(files: readonly string[]): string {
  const identifyFile = (file: string): string => {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
      return [dev, ino, size, mtimeNs, ctimeNs].join(":");
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    }
  };
  return files.map(identifyFile).join(" ");
}

class Watch implements Disposable {
  readonly #directories: ReadonlySet<string>;
  readonly #clock: Clock;
  readonly #check: () => void;
  /** Undefined: every change counts. */
  readonly #identify: (() => string) | undefined;
  #identity: string | undefined;
  #watchers: readonly FSWatcher[];
  #settle: Timer | undefined;
  #next: Timer;

  constructor(
    directories: ReadonlySet<string>,
    clock: Clock,
    check: () => void,
    identifyFiles: (() => string) | undefined,
  ) {
    this.#directories = directories;
    this.#clock = clock;
    this.#check = check;
    this.#identify = identifyFiles;
    this.#identity = identifyFiles?.();
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
      this.#identity = this.#identify?.();
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
      const identity = this.#identify?.();
      if (identity !== undefined && identity === this.#identity) return;
      this.#identity = identity;
      this.#check();
    });
  }
}
