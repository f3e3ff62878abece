/** The source location of the call that writes a log line. */
import { basename } from "node:path";
import { getCallSites } from "node:util";

/** In the bundle (build.mjs): the source of a position of one of its scripts, `src/std/time/clock.ts:12`. */
declare const SVC_LOCATE: ((script: string, line: number, column: number) => string | undefined) | undefined;
const locate = typeof SVC_LOCATE === "undefined" ? undefined : SVC_LOCATE;

/** Enough for the frames of the logger itself and the first one outside of it. */
const FRAMES_MAX = 8;
const LOGGER_FRAMES = /^(?:caller|logger)\.ts:/;

/** File and line of the first stack frame outside the logger, as in klog's header: `clock.ts:12`. About 3 µs. */
export function callerLocation(): string {
  for (const { scriptName, lineNumber, columnNumber } of getCallSites(FRAMES_MAX)) {
    const location = locate?.(scriptName, lineNumber, columnNumber) ?? `${scriptName}:${lineNumber}`;
    const file = basename(location);
    if (!LOGGER_FRAMES.test(file)) return file;
  }
  return "unknown:0";
}
