/**
 * Keeps files of cgroups open that are read for every scrape: to open and close one takes six times as long as to read
 * it again from its start, which makes the kernel write its content anew.
 */
import { closeSync, openSync } from "node:fs";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { readDescriptor, readProcFile } from "./proc-file.ts";

/** A file that was not read for so long, and up to twice that, is closed. */
const UNUSED_MS = 60_000;
/** Enough for the containers of 100 pods; further files are opened for each read. */
const FILES_MAX = 2048;

export class OpenFiles implements Disposable {
  readonly #clock: Clock;
  /** Descriptors by path, of files that were read since the timer was set, and before. */
  #used = new Map<string, number>();
  #unused = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined when the file does not exist or cannot be read. */
  read(path: string): string | undefined {
    const descriptor = this.#used.get(path) ?? this.#unused.get(path);
    if (descriptor === undefined) return this.#open(path);
    const text = readDescriptor(descriptor);
    this.#unused.delete(path);
    if (text !== undefined) {
      this.#used.set(path, descriptor);
      return text;
    }
    // The cgroup was removed; another one may have its path.
    this.#used.delete(path);
    closeSync(descriptor);
    return readProcFile(path);
  }

  #open(path: string): string | undefined {
    if (this.#used.size + this.#unused.size >= FILES_MAX) return readProcFile(path);
    try {
      const descriptor = openSync(path, "r");
      this.#used.set(path, descriptor);
      this.#timer ??= this.#clock.timer(UNUSED_MS, () => this.#closeUnused());
      return readDescriptor(descriptor);
    } catch {
      return undefined;
    }
  }

  #closeUnused(): void {
    for (const descriptor of this.#unused.values()) closeSync(descriptor);
    this.#unused = this.#used;
    this.#used = new Map();
    const isEmpty = this.#unused.size === 0;
    this.#timer = isEmpty ? undefined : this.#clock.timer(UNUSED_MS, () => this.#closeUnused());
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    for (const descriptor of [...this.#used.values(), ...this.#unused.values()]) closeSync(descriptor);
    this.#used.clear();
    this.#unused.clear();
  }
}
