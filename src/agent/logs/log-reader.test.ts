import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { parseLogLine } from "./log-line.ts";
import { type LogOptions, readLog } from "./log-reader.ts";

const directory = await mkdtemp(join(tmpdir(), "svc-log-"));
t.teardown(() => rm(directory, { recursive: true }));
const path = join(directory, "0.log");
const line = (second: number, text: string, tag = "F"): string =>
  `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000001Z stdout ${tag} ${text}\n`;
const all: LogOptions = {
  follow: false,
  tailLines: undefined,
  since: undefined,
  timestamps: false,
  limitBytes: undefined,
};

function chunks(options: Partial<LogOptions>, running: () => boolean): AsyncIterable<Uint8Array> {
  const source = { path, clock: systemClock, signal: new AbortController().signal, running };
  return readLog(source, { ...all, ...options });
}

async function read(options: Partial<LogOptions>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks(options, () => false)) all.push(chunk);
  return Buffer.concat(all).toString();
}

t.test("readLog() removes the runtime's prefix, and joins the parts of a long line", async (t) => {
  await writeFile(path, line(1, "one") + line(2, "tw", "P") + line(2, "o") + line(3, "three"));
  t.equal(await read({}), "one\ntwo\nthree\n");
});

t.test("readLog() returns the last lines, lines since a time, timestamps, and at most a number of bytes", async (t) => {
  await writeFile(path, line(1, "one") + line(2, "two") + line(3, "three"));
  t.equal(await read({ tailLines: 2 }), "two\nthree\n");
  t.equal(await read({ tailLines: 0 }), "");
  t.equal(await read({ tailLines: 99 }), "one\ntwo\nthree\n");
  t.equal(await read({ since: Date.UTC(2026, 0, 1, 0, 0, 2) }), "two\nthree\n");
  t.equal(await read({ tailLines: 1, timestamps: true }), "2026-01-01T00:00:03.000000001Z three\n");
  t.equal(await read({ limitBytes: 5 }), "one\nt");
});

t.test("readLog() finds the last lines of a log longer than one read", async (t) => {
  const many = Array.from({ length: 5000 }, (_, index) => line(index % 60, `line ${index}`));
  await writeFile(path, many.join(""));
  const lines = (await read({ tailLines: 3000 })).trimEnd().split("\n");
  t.equal(lines.length, 3000);
  t.equal(lines[0], "line 2000");
});

t.test("readLog() follows the log across a rotation until the container ends", async (t) => {
  await writeFile(path, line(1, "one"));
  let running = true;
  let text = "";
  for await (const chunk of chunks({ follow: true }, () => running)) {
    text += Buffer.from(chunk).toString();
    if (text === "one\n") {
      await appendFile(path, line(2, "two"));
      await rename(path, `${path}.1`);
      await writeFile(path, line(3, "three"));
    }
    if (text.endsWith("three\n")) running = false;
  }
  t.equal(text, "one\ntwo\nthree\n");
});

t.test("parseLogLine() returns undefined for malformed lines", async (t) => {
  for (const text of ["", "hello", "2026-01-01T00:00:00Z stdout", "2026-01-01T00:00:00.0Z stdin F x", "a b c d"]) {
    t.equal(parseLogLine(text), undefined, text);
  }
  t.match(parseLogLine("2026-01-01T00:00:00.0Z stderr P:x text"), { stream: "stderr", partial: true, content: "text" });
});
