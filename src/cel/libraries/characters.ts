/** Positions in Unicode characters, in which CEL counts, and searches in texts. */
import { CostExceeded } from "../evaluate/frame.ts";

/** Texts up to this length, in UTF-16 units, are scanned each time. */
const SHORT_MAX = 64;
const RECENT_MAX = 4;
/** What one evaluation may scan, in UTF-16 units: CEL's costs do not limit it. */
const SCANNED_MAX = 2 ** 24;
/** A text that was scanned is compared with others. */
const COMPARED_PER_UNIT = 64;

interface ScannedText {
  readonly text: string;
  /** Where each character starts, in UTF-16 units; undefined when each has one. */
  readonly starts: Uint32Array | undefined;
}

/** For loops, which scan a text again for each item. */
let recent: ScannedText[] = [];
let scannedUnits = 0;

/** For a new evaluation. */
export function resetScans(): void {
  scannedUnits = 0;
}

function countScanned(units: number): void {
  scannedUnits += units;
  if (scannedUnits > SCANNED_MAX) throw new CostExceeded();
}

/** Keeps the text until the turn of the event loop ends. */
function keep(scanned: ScannedText): void {
  if (recent.length === 0) queueMicrotask(() => (recent = []));
  recent = [scanned, ...recent.slice(0, RECENT_MAX - 1)];
}

function startsOf(text: string): Uint32Array | undefined {
  if (text.length <= SHORT_MAX) return scan(text);
  for (const known of recent) {
    if (known.text !== text) continue;
    countScanned(text.length / COMPARED_PER_UNIT);
    return known.starts;
  }
  countScanned(text.length);
  const starts = scan(text);
  keep({ text, starts });
  return starts;
}

function scan(text: string): Uint32Array | undefined {
  if (!/[\ud800-\udbff]/.test(text)) return undefined;
  const starts = new Uint32Array(text.length);
  let count = 0;
  for (let unit = 0; unit < text.length; unit += (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1) starts[count++] = unit;
  return count === text.length ? undefined : starts.subarray(0, count);
}

export function countCharacters(text: string): number {
  return startsOf(text)?.length ?? text.length;
}

/** The UTF-16 unit where a character starts, or the length of the text. */
export function unitOf(text: string, character: number): number {
  const starts = startsOf(text);
  return starts === undefined ? character : (starts[character] ?? text.length);
}

/** The character that starts at a UTF-16 unit; -1 for a negative one. */
export function characterOf(text: string, unit: number): number {
  const starts = startsOf(text);
  if (starts === undefined || unit < 0) return unit;
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (starts[middle]! < unit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** JavaScript's own searches compare up to this number of units in a few milliseconds. */
const PRODUCT_MAX = 2 ** 22;

function isQuick(text: string, part: string): boolean {
  return text.length * part.length <= PRODUCT_MAX;
}

/** As `text.indexOf()`, in linear time. `part` is not empty. */
export function search(text: string, part: string, from = 0): number {
  return isQuick(text, part) ? text.indexOf(part, from) : (matchStarts(text, part, from).next().value ?? -1);
}

/** As `text.lastIndexOf()`, in linear time. `part` is not empty. */
export function searchLast(text: string, part: string, upTo = text.length): number {
  if (isQuick(text, part)) return text.lastIndexOf(part, upTo);
  let last = -1;
  for (const start of matchStarts(text, part, 0)) {
    if (start > upTo) break;
    last = start;
  }
  return last;
}

/** As `text.split()`, in linear time. `separator` is not empty. */
export function splitText(text: string, separator: string): string[] {
  if (isQuick(text, separator)) return text.split(separator);
  const parts: string[] = [];
  let end = 0;
  for (const start of matchStarts(text, separator, 0)) {
    if (start < end) continue;
    parts.push(text.slice(end, start));
    end = start + separator.length;
  }
  return [...parts, text.slice(end)];
}

/** The algorithm of Knuth, Morris and Pratt; matches can overlap. */
function* matchStarts(text: string, part: string, from: number): Generator<number, undefined> {
  if (part.length > text.length - from) return;
  const borders = bordersOf(part);
  let matched = 0;
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    while (matched > 0 && part.charCodeAt(matched) !== unit) matched = borders[matched - 1]!;
    if (part.charCodeAt(matched) === unit) matched++;
    if (matched < part.length) continue;
    yield at + 1 - matched;
    matched = borders[matched - 1]!;
  }
}

/** For each prefix, the length of its longest proper prefix that is also its suffix. */
function bordersOf(part: string): Uint32Array {
  const borders = new Uint32Array(part.length);
  let length = 0;
  for (let at = 1; at < part.length; at++) {
    while (length > 0 && part.charCodeAt(at) !== part.charCodeAt(length)) length = borders[length - 1]!;
    if (part.charCodeAt(at) === part.charCodeAt(length)) length++;
    borders[at] = length;
  }
  return borders;
}
