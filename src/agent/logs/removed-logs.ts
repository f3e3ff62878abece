/**
 * Rotated logs that rotation has removed. Limits on disk come before slow followers: one that has not read a removed
 * log continues with the oldest one left, and both its client and the agent's log get a notice.
 */
import type { Logger } from "../../std/log/logger.ts";

/** Of each log, the newest are kept: a follower finds the oldest log left, which is later than all of them. */
const STAMPS_MAX = 8;

export class RemovedLogs {
  readonly #log: Logger;
  /** By the path of the current log. */
  readonly #stamps = new Map<string, readonly string[]>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add(path: string, stamp: string): void {
    this.#stamps.set(path, [...(this.#stamps.get(path) ?? []), stamp].sort().slice(-STAMPS_MAX));
  }

  /** Forgets the logs of containers that are gone. */
  retain(paths: ReadonlySet<string>): void {
    for (const path of this.#stamps.keys()) if (!paths.has(path)) this.#stamps.delete(path);
  }

  /**
   * Whether a log was removed that was rotated after one log and before another. Without the second stamp, that is the
   * current log.
   */
  hasBetween(path: string, after: string | undefined, before: string | undefined): boolean {
    if (after === undefined) return false;
    const isBetween = (stamp: string): boolean => stamp > after && (before === undefined || stamp < before);
    const found = (this.#stamps.get(path) ?? []).some(isBetween);
    if (found) this.#log.warn("Rotation removed a container log before a client has read it", { path, after, before });
    return found;
  }
}
