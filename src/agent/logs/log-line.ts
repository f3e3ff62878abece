/** One line of a container log as the runtime writes it: `2026-11-21T03:32:07.123456789Z stdout F text`. */
export interface LogLine {
  /** RFC 3339 with nanoseconds, as written. */
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** The next line of the same stream continues the text. */
  readonly partial: boolean;
  readonly content: string;
}

/** `line` without its newline. Undefined for a malformed line. */
export function parseLogLine(line: string): LogLine | undefined {
  const first = line.indexOf(" ");
  const second = line.indexOf(" ", first + 1);
  if (first < 20 || second < 0) return undefined;
  const stream = line.slice(first + 1, second);
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  const third = line.indexOf(" ", second + 1);
  // Tags are separated by colons; the first is F (full) or P (partial).
  const tag = line.slice(second + 1, third < 0 ? undefined : third).split(":")[0];
  if (tag !== "F" && tag !== "P") return undefined;
  return { time: line.slice(0, first), stream, partial: tag === "P", content: third < 0 ? "" : line.slice(third + 1) };
}
