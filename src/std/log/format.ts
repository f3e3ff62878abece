/** One log line as a value, and its two formats: klog's text and Kubernetes' JSON. */
import { inspect } from "node:util";

export interface LogLine {
  readonly severity: "info" | "warning" | "error";
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly module: string;
  /** `pod-worker.ts:42` */
  readonly caller: string;
  readonly level: number;
  readonly message: string;
  /** The message may have several lines, and is printed without quotes. */
  readonly isText?: boolean | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Longest value printed, in characters. */
const VALUE_LENGTH_MAX = 4096;

const HEADER_LETTER = { info: "I", warning: "W", error: "E" } as const;

/** `I1025 00:15:15.525000    4711 pod-worker.ts:42] "Started container" pod="default/web" attempt=2` */
export function formatText(line: LogLine, pid: number): string {
  const time = headerTime(line.time);
  const header = `${HEADER_LETTER[line.severity]}${time} ${String(pid).padStart(7)} ${line.caller}]`;
  let text = `${header} ${line.isText === true ? printableLines(line.message) : quote(truncate(line.message))}`;
  for (const [key, value] of Object.entries(line.fields)) {
    if (value !== undefined) text += ` ${plainKey(key)}=${textValue(value)}`;
  }
  return `${text}\n`;
}

/** Members that every line has; a field of that name gets an underscore. */
const RESERVED = new Set(["ts", "v", "caller", "msg", "logger", "severity", "time", "level"]);

/** All members of the JSON format but `ts` and `msg`. */
export function jsonFields(line: LogLine): Record<string, unknown> {
  const members: Record<string, unknown> = { logger: line.module, caller: line.caller };
  if (line.severity === "error") members.severity = "error";
  else members.v = line.level;
  if (line.severity === "warning") members.severity = "warning";
  for (const [key, value] of Object.entries(line.fields)) {
    if (value !== undefined) members[RESERVED.has(key) ? `${key}_` : key] = jsonValue(value);
  }
  return members;
}

export function truncate(text: string): string {
  if (text.length <= VALUE_LENGTH_MAX) return text;
  return `${text.slice(0, VALUE_LENGTH_MAX)}… (${text.length - VALUE_LENGTH_MAX} more characters)`;
}

/** The message of what was thrown, followed by those of its causes that it does not contain. */
function formatErrorChain(error: unknown): string {
  const parts: string[] = [];
  let current = error;
  // Cause chains are as short as the layers of the program; a cycle ends here too.
  for (let depth = 0; current !== undefined && current !== null && depth < 10; depth++) {
    const text = formatError(current);
    if (parts.at(-1)?.includes(text) !== true) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(": ");
}

function formatError(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(formatErrorChain).join("; ");
  if (error instanceof Error) return error.message === "" ? error.name : error.message;
  return typeof error === "string" ? error : toJsonText(error);
}

function textValue(value: unknown): string {
  if (typeof value === "string") return quote(truncate(value));
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (value instanceof Error) return quote(truncate(formatErrorChain(value)));
  if (value === null) return "null";
  return escapeUnsafe(truncate(toJsonText(value)));
}

function jsonValue(value: unknown): unknown {
  if (typeof value === "string") return truncate(value);
  if (typeof value === "bigint") return String(value);
  if (value instanceof Error) return truncate(formatErrorChain(value));
  if (typeof value !== "object" || value === null) return value;
  const text = toJsonText(value);
  if (text.length > VALUE_LENGTH_MAX) return truncate(text);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function toJsonText(value: unknown): string {
  try {
    const plain = (_key: string, member: unknown): unknown => {
      if (typeof member === "bigint") return String(member);
      return member instanceof Error ? formatErrorChain(member) : member;
    };
    const text: string | undefined = JSON.stringify(value, plain);
    if (text !== undefined) return text;
  } catch {
    // Circular, or a toJSON that throws.
  }
  return JSON.stringify(inspect(value, { depth: 2, breakLength: Number.POSITIVE_INFINITY }));
}

function quote(text: string): string {
  return escapeUnsafe(JSON.stringify(text));
}

/** The lines of a text, with the characters escaped that a terminal interprets. */
function printableLines(text: string): string {
  const lines = text.split("\n").map((line) => quote(truncate(line)).slice(1, -1).replaceAll('\\"', '"'));
  return lines.join("\n");
}

/** Characters that JSON does not escape and a terminal or line reader interprets: DEL, C1, line and direction marks. */
const UNSAFE = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function plainKey(key: string): string {
  return /^[\w./-]+$/.test(key) ? key : quote(key);
}

/** `1025 00:15:15.525000`: month and day, then local time; the clock counts milliseconds, klog prints microseconds. */
function headerTime(time: number): string {
  const date = new Date(time);
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${two(date.getMonth() + 1)}${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day} ${clock}.${String(date.getMilliseconds()).padStart(3, "0")}000`;
}
