/** The log of a slow request with its steps, in the format of Kubernetes' utiltrace. */
import { type RandomSource, systemRandom } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import { formatGoDuration } from "../std/time/go-duration.ts";
import { TokenBucket } from "../std/time/token-bucket.ts";
import { type Attributes, SLOW_MS, Span, type SpanEvent } from "./span.ts";

/** Lines a second at most at a verbosity below that of Kubernetes. */
const LOGGED_PER_SECOND_MAX = 10;
const LEVEL = 2;
const ALL_STEPS_LEVEL = 4;

/**
 * Logs slow spans. Kubernetes logs them from -v=2 on. This program always does, since operators look for them; below
 * that level it limits their number, so that an overloaded server does not fill the disk.
 */
export function createSlowTraceLogger(
  log: Logger,
  clock: Clock,
  random: RandomSource = systemRandom,
): (span: Span) => void {
  const bucket = new TokenBucket(clock, LOGGED_PER_SECOND_MAX, LOGGED_PER_SECOND_MAX);
  const id = (): number => Math.floor(random.fraction() * 2 ** 31);
  return (span) => {
    const { startedAt, endedAt = startedAt } = span;
    // No part takes longer than the whole.
    if (endedAt - startedAt < SLOW_MS) return;
    if (log.v(LEVEL) === undefined && !bucket.take()) return;
    for (const text of formatSlowTraces(span, id, log.v(ALL_STEPS_LEVEL) !== undefined)) log.text(text);
  };
}

/** One text for each slow span that is not a part of another slow one. `all`: with the steps that were fast. */
function formatSlowTraces(span: Span, id: () => number, all: boolean): readonly string[] {
  if (isSlow(span)) return [formatTrace(span, id(), all)];
  return span.items.flatMap((item) => (item instanceof Span ? formatSlowTraces(item, id, all) : []));
}

function formatTrace(span: Span, id: number, all: boolean): string {
  const { startedAt, endedAt = startedAt, trace } = span;
  const ms = endedAt - startedAt;
  const lead = `\nTrace[${id}]: `;
  const head = `Trace[${id}]: ${JSON.stringify(span.name)} ${formatFields(span.attributes)}`;
  const when = `(${formatDate(trace.epoch + startedAt)}) (total time: ${Math.floor(ms)}ms):`;
  const total = `[${formatGoDuration(ms)}]`;
  return `${head}${when}${formatSteps(span, lead, stepThreshold(span), all)}${lead}${total} ${total} END`;
}

function formatSteps(span: Span, lead: string, threshold: number, all: boolean): string {
  let last = span.startedAt;
  let text = "";
  for (const item of span.items) {
    if (item instanceof Span) {
      text += formatNested(item, lead, all);
      last = item.endedAt ?? item.startedAt;
    } else {
      const ms = item.at - last;
      if (all || ms >= threshold) text += `${lead}---${summary(item, ms, item.at, span)}`;
      last = item.at;
    }
  }
  return text;
}

function formatNested(span: Span, lead: string, all: boolean): string {
  const { startedAt, endedAt = startedAt } = span;
  if (isSlow(span) || all) {
    const head = summary(span, endedAt - startedAt, startedAt, span);
    return `${lead}[${head}${formatSteps(span, `${lead} `, stepThreshold(span), all)}]`;
  }
  return span.items.map((item) => (item instanceof Span ? formatNested(item, lead, all) : "")).join("");
}

function summary({ name, attributes }: Span | SpanEvent, ms: number, at: number, { trace }: Span): string {
  const clock = formatDate(trace.epoch + at).split(" ")[1];
  return `${JSON.stringify(name)} ${formatFields(attributes)}${Math.floor(ms)}ms (${clock})`;
}

function isSlow({ thresholdMs = 0, startedAt, endedAt }: Span): boolean {
  return endedAt !== undefined && endedAt - startedAt >= thresholdMs;
}

/** A step's share of the threshold: what is left of it without the nested spans, which have their own. */
function stepThreshold({ thresholdMs = 0, items }: Span): number {
  const nested = items.filter((item) => item instanceof Span);
  const rest = nested.reduce((sum, item) => sum - (item.thresholdMs ?? 0), thresholdMs);
  if (rest < thresholdMs / 4) return thresholdMs / 4 / (items.length + 1);
  return rest / (items.length + 1 - nested.length);
}

function formatFields(attributes: Attributes): string {
  // A client chooses some of the values: they must not look like further lines.
  const fields = Object.entries(attributes).map(([key, value]) => `${key}:${String(value).replace(/\s/g, " ")}`);
  return fields.length === 0 ? "" : `${fields.join(",")} `;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `02-Jan-2006 15:04:05.000`, local time. */
function formatDate(time: number): string {
  const date = new Date(time);
  const two = (number: number): string => String(number).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const day = `${two(date.getDate())}-${MONTHS[date.getMonth()]}-${date.getFullYear()}`;
  return `${day} ${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
