/** Formats lines of a container log for clients, on bytes: a container may write 50 MB/s. */

export interface LineOptions {
  /** Milliseconds since 1970; older lines are skipped. */
  readonly since: number | undefined;
  readonly timestamps: boolean;
  /** Undefined: both. */
  readonly stream?: "stdout" | "stderr" | undefined;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
const COLON = 0x3a;
const DOT = 0x2e;
const NINE = 0x39;
const ZERO = 0x30;
const FULL = 0x46;
const PARTIAL = 0x50;
const LETTER_Z = 0x5a;
/** `2026-11-21T03:32:07`. */
const SECONDS_LENGTH = 19;
const FRACTION_DIGITS = 9;
const STDOUT = Buffer.from("stdout");
const STDERR = Buffer.from("stderr");
const STREAM_LENGTH = 6;
/** What a timestamp may add to a line: nanoseconds that the runtime has cut, and a space. */
const PREFIX_GROWTH = 12;

/** State between chunks: a timestamp is written only where a line starts, not where a part continues it. */
export class LineFormatter {
  readonly #options: LineOptions;
  readonly #sinceSecond: string;
  #startsLine = true;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#sinceSecond =
      options.since === undefined ? "" : new Date(options.since).toISOString().slice(0, SECONDS_LENGTH);
  }

  /** `lines` as the runtime has written them; the last may lack its newline. Malformed lines are skipped. */
  format(lines: Buffer): Buffer {
    let target: Buffer = Buffer.allocUnsafe(lines.length);
    let length = 0;
    for (let start = 0; start < lines.length; ) {
      const newline = lines.indexOf(NEWLINE, start);
      const end = newline < 0 ? lines.length : newline + 1;
      const needed = length + end - start + PREFIX_GROWTH;
      if (needed > target.length) target = grow(target, length, needed);
      length = this.#formatLine(lines, start, end, target, length);
      start = end;
    }
    return target.subarray(0, length);
  }

  /** Returns the new length of `target`. */
  #formatLine(lines: Buffer, start: number, end: number, target: Buffer, length: number): number {
    const { timestamps, stream } = this.#options;
    const timeEnd = findSpace(lines, start + SECONDS_LENGTH + 1, end);
    const streamEnd = timeEnd + 1 + STREAM_LENGTH;
    if (timeEnd < 0 || streamEnd + 1 >= end || lines[streamEnd] !== SPACE) return length;
    const name = readStream(lines, timeEnd + 1);
    if (name === undefined || (stream !== undefined && name !== stream)) return length;
    const tag = lines[streamEnd + 1];
    if (tag !== FULL && tag !== PARTIAL) return length;
    // Tags are separated by colons; the first is F (full) or P (partial).
    const after = lines[streamEnd + 2];
    const isTagged = after === COLON;
    if (!isTagged && after !== SPACE && after !== NEWLINE && after !== undefined) return length;
    const tagEnd = isTagged ? findSpace(lines, streamEnd + 2, end) : streamEnd + 2;
    if (this.#isTooOld(lines, start, timeEnd)) return length;
    const contentEnd = tag === PARTIAL && lines[end - 1] === NEWLINE ? end - 1 : end;
    const content = tagEnd < 0 || lines[tagEnd] === NEWLINE ? contentEnd - (tag === FULL ? 1 : 0) : tagEnd + 1;
    let at = length;
    if (timestamps && this.#startsLine) at = writeTime(lines, start, timeEnd, target, at);
    const size = Math.max(0, contentEnd - content);
    target.set(lines.subarray(contentEnd - size, contentEnd), at);
    at += size;
    this.#startsLine = size === 0 || target[at - 1] === NEWLINE;
    return at;
  }

  #isTooOld(lines: Buffer, start: number, timeEnd: number): boolean {
    const { since } = this.#options;
    if (since === undefined) return false;
    const second = lines.toString("latin1", start, start + SECONDS_LENGTH);
    if (lines[timeEnd - 1] === LETTER_Z && second !== this.#sinceSecond) return second < this.#sinceSecond;
    return Date.parse(lines.toString("latin1", start, timeEnd)) < since;
  }
}

function grow(buffer: Buffer, length: number, needed: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.max(needed, 2 * buffer.length));
  larger.set(buffer.subarray(0, length));
  return larger;
}

/** The index of the next space before the line's end; -1 without one. */
function findSpace(lines: Buffer, from: number, end: number): number {
  for (let index = from; index < end; index++) if (lines[index] === SPACE) return index;
  return -1;
}

function readStream(lines: Buffer, at: number): "stdout" | "stderr" | undefined {
  if (hasBytes(lines, at, STDOUT)) return "stdout";
  return hasBytes(lines, at, STDERR) ? "stderr" : undefined;
}

function hasBytes(lines: Buffer, at: number, wanted: Buffer): boolean {
  for (let index = 0; index < wanted.length; index++) if (lines[at + index] !== wanted[index]) return false;
  return true;
}

/** Writes all nine digits of the nanoseconds, of which the runtime cuts trailing zeros, and a space. */
function writeTime(lines: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let source = start;
  let next = at;
  while (source < start + SECONDS_LENGTH) target[next++] = lines[source++] ?? SPACE;
  target[next++] = DOT;
  if (lines[source] === DOT) source++;
  let digits = 0;
  for (; source < end && isDigit(lines[source]) && digits < FRACTION_DIGITS; digits++)
    target[next++] = lines[source++] ?? ZERO;
  for (; digits < FRACTION_DIGITS; digits++) target[next++] = ZERO;
  while (source < end) target[next++] = lines[source++] ?? SPACE;
  target[next++] = SPACE;
  return next;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}
