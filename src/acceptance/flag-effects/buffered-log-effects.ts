/** Effects of the flags that split the log into two streams and buffer one of them. */
import type { Test } from "tap";
import { type LoggingFlags, logOptions } from "../../flags/log-options.ts";
import { createLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

type BufferName =
  | "log-flush-frequency"
  | "log-text-split-stream"
  | "log-text-info-buffer-size"
  | "log-json-split-stream"
  | "log-json-info-buffer-size";

type Parse = (...argv: readonly string[]) => LoggingFlags;

export function bufferedLogEffects(parse: Parse): Readonly<Record<BufferName, (t: Test) => Promise<void>>> {
  const splits =
    (...argv: readonly string[]) =>
    async (t: Test) => {
      t.match(logTo(parse(...argv)), { out: [/hello/], err: [/oh/] });
    };
  const buffers =
    (...argv: readonly string[]) =>
    async (t: Test) => {
      const [size = "", ...others] = argv;
      t.equal(logTo(parse(...others)).clock.pending, 0);
      t.equal(logTo(parse(size, ...others)).clock.pending, 1, "a flush is due");
    };
  const json = "--logging-format=json";
  return {
    "log-text-split-stream": splits("--log-text-split-stream"),
    "log-json-split-stream": splits("--log-json-split-stream", json),
    "log-text-info-buffer-size": buffers("--log-text-info-buffer-size=4Ki", "--log-text-split-stream"),
    "log-json-info-buffer-size": buffers("--log-json-info-buffer-size=4Ki", "--log-json-split-stream", json),
    "log-flush-frequency": async (t) => {
      const buffered = ["--log-text-split-stream", "--log-text-info-buffer-size=4Ki"];
      const log = logTo(parse("--log-flush-frequency=2s", ...buffered));
      await log.clock.advance(1999);
      t.equal(log.flushes(), 0);
      await log.clock.advance(1);
      t.ok(log.flushes() > 0);
    },
  };
}

function logTo(flags: LoggingFlags) {
  const clock = new FakeClock();
  const out: string[] = [];
  const err: string[] = [];
  let flushes = 0;
  const sink = (lines: string[]) => ({ write: (line: string) => lines.push(line), flushSync: () => void flushes++ });
  const log = createLogger(logOptions(flags), { clock, stdout: sink(out), stderr: sink(err) });
  log.info("hello");
  log.error("oh");
  return { clock, out, err, flushes: () => flushes };
}
