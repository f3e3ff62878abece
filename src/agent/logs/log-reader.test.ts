import { closeSync, openSync, writeSync } from "node:fs";
import { appendFile, mkdtemp, readdir, rename, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { LogChanges } from "./log-changes.ts";
import { parseLogLine } from "./log-line.ts";
import { type LogOptions, readLog } from "./log-reader.ts";
import { RemovedLogs } from "./removed-logs.ts";

const directory = await mkdtemp(join(tmpdir(), "svc-log-"));
t.teardown(() => rm(directory, { recursive: true }));
const path = join(directory, "0.log");
const changes = new LogChanges(systemClock);
const removed = new RemovedLogs(silentLogger);
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
  const source = { path, clock: systemClock, changes, removed, signal: new AbortController().signal, running };
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

/** Follows the log and calls `next` with what has been read so far, after each chunk. */
async function follow(
  next: (text: string, stop: () => void) => Promise<void> | void,
  options: Partial<LogOptions> = {},
): Promise<string> {
  let running = true;
  let text = "";
  const stop = (): void => {
    running = false;
  };
  for await (const chunk of chunks({ follow: true, ...options }, () => running)) {
    text += Buffer.from(chunk).toString();
    await next(text, stop);
  }
  return text;
}

async function emptyDirectory(): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name));
}

const stamped = (second: number): string => `${path}.20260101-0000${String(second).padStart(2, "0")}`;

t.test("readLog() follows all logs that were rotated while it was slow, also compressed ones", async (t) => {
  await emptyDirectory();
  await writeFile(path, line(1, "one"));
  const text = await follow(async (text, stop) => {
    if (text.endsWith("five\n")) stop();
    if (text !== "one\n") return;
    await appendFile(path, line(1, "one and a half"));
    await rename(path, stamped(1));
    await writeFile(stamped(2), line(2, "two"));
    await writeFile(`${stamped(3)}.gz`, gzipSync(line(3, "three")));
    await writeFile(stamped(4), line(4, "four"));
    await writeFile(path, line(5, "five"));
    // What has just been compressed is in two files, and the oldest is removed.
    await writeFile(`${stamped(2)}.gz`, gzipSync(line(2, "two")));
    await rm(stamped(1));
  });
  t.equal(text, "one\none and a half\ntwo\nthree\nfour\nfive\n");
});

for (const [removals, text] of [
  [[], "one\nthree\nfour\n"],
  [[1], "one\nthree\nfour\n"],
  [[2], "one\nNOTICE\nthree\nfour\n"],
  [[1, 2], "one\nNOTICE\nthree\nfour\n"],
  [[2, 3], "one\nNOTICE\nfour\n"],
  [[1, 2, 3], "one\nNOTICE\nfour\n"],
] as const) {
  for (const stream of [undefined, "stdout", "stderr"] as const) {
    t.test(`readLog() writes a notice when logs were removed unread: ${removals.join()} of ${stream}`, async (t) => {
      await emptyDirectory();
      const removed = new RemovedLogs(silentLogger);
      const write = (file: string, second: number, word: string): Promise<void> =>
        writeFile(file, line(second, word).replace("stdout", stream ?? "stdout"));
      await write(path, 1, "one");
      let running = true;
      const source = { path, clock: systemClock, changes, signal: new AbortController().signal };
      const log = readLog({ ...source, removed, running: () => running }, { ...all, follow: true, stream });
      let read = "";
      for await (const chunk of log) {
        read += Buffer.from(chunk).toString();
        if (read.endsWith("four\n")) running = false;
        if (read !== "one\n") continue;
        await rename(path, stamped(1));
        await utimes(stamped(1), 0, 0);
        if (!removals.some((second) => second === 3)) await write(stamped(3), 3, "three");
        for (const second of removals) {
          removed.add(path, stamped(second).slice(path.length + 1));
          await rm(stamped(second), { force: true });
        }
        await write(path, 4, "four");
      }
      t.equal(read.replace(/^\[lines are missing here: .*\]$/m, "NOTICE"), text);
    });
  }
}

t.test("readLog() waits for lines that the runtime writes to the old log after it has opened the next", async (t) => {
  await emptyDirectory();
  await writeFile(path, line(1, "one"));
  const text = await follow(async (text, stop) => {
    if (text.endsWith("three\n")) stop();
    if (text !== "one\n") return;
    await rename(path, stamped(1));
    await writeFile(path, line(3, "three"));
    void setTimeout(50).then(() => appendFile(stamped(1), line(2, "two")));
  });
  t.equal(text, "one\ntwo\nthree\n");
});

t.test("readLog() starts in the middle of a rotation with the log to which the runtime writes", async (t) => {
  await emptyDirectory();
  await writeFile(stamped(1), line(1, "one"));
  t.equal(await read({}), "one\n");
  const text = await follow(async (text, stop) => {
    if (text.endsWith("two\n")) stop();
    else await writeFile(path, line(2, "two"));
  });
  t.equal(text, "one\ntwo\n");
});

t.test("readLog() waits for the rest of a line, and for the rest of a log that was truncated", async (t) => {
  await emptyDirectory();
  await writeFile(path, line(1, "one") + line(2, "two").slice(0, 40));
  t.match(await read({}), /^one\n/);
  const text = await follow(async (text, stop) => {
    if (text === "one\n") void setTimeout(50).then(() => appendFile(path, line(2, "two").slice(40)));
    if (text.endsWith("two\n")) {
      await truncate(path);
      void setTimeout(100).then(() => appendFile(path, line(3, "three")));
    }
    if (text.endsWith("three\n")) stop();
  });
  t.equal(text, "one\ntwo\nthree\n");
});

t.test("readLog() ends with a removed container and when the signal aborts", { timeout: 20_000 }, async (t) => {
  await emptyDirectory();
  await writeFile(path, line(1, "one"));
  const text = await follow(async (_, stop) => {
    await rm(path);
    stop();
  });
  t.equal(text, "one\n");
  await writeFile(path, line(1, "one"));
  const source = { path, clock: systemClock, changes, removed, signal: AbortSignal.timeout(100), running: () => true };
  const read: string[] = [];
  for await (const chunk of readLog(source, { ...all, follow: true })) read.push(Buffer.from(chunk).toString());
  t.same(read, ["one\n"]);
});

t.test("readLog() with a time reads also the rotated logs that were written since", async (t) => {
  await emptyDirectory();
  for (const [second, suffix] of [
    [1, ""],
    [2, ".gz"],
    [3, ""],
  ] as const) {
    const text = line(second, `${second}`) + line(second, `${second}b`);
    await writeFile(`${stamped(second)}${suffix}`, suffix === "" ? text : gzipSync(text));
    await utimes(`${stamped(second)}${suffix}`, 0, Date.UTC(2026, 0, 1, 0, 0, second, 1) / 1000);
  }
  await writeFile(path, line(4, "4"));
  t.equal(await read({ since: Date.UTC(2026, 0, 1, 0, 0, 2) }), "2\n2b\n3\n3b\n4\n");
  t.equal(await read({ since: Date.UTC(2026, 0, 1, 0, 0, 4) }), "4\n");
  t.equal(await read({ since: 0, tailLines: 5 }), "4\n", "the last lines are those of the current log");
  t.equal(await read({}), "4\n", "as kubelet without a time");
  const text = await follow((text, stop) => (text.endsWith("4\n") ? stop() : undefined), { since: 0 });
  t.equal(text, "1\n1b\n2\n2b\n3\n3b\n4\n");
});

t.test("readLog() with a time reads a rotated log that was modified before the time of its last line", async (t) => {
  await emptyDirectory();
  const since = Date.UTC(2026, 0, 1, 0, 0, 2);
  // Modification times advance with the kernel's timer, at most 10 ms behind; compression drops fractions.
  for (const behindMs of [0, 1, 4, 10, 11]) {
    await writeFile(stamped(1), line(1, "one") + line(2, "two"));
    await writeFile(path, line(3, "three"));
    const modified = new Date(since - behindMs);
    await utimes(stamped(1), modified, modified);
    t.equal(await read({ since }), "two\nthree\n", `${behindMs} ms before`);
  }
});

t.test("followers lose and repeat no line while a log is rotated again and again", { timeout: 60_000 }, async (t) => {
  await emptyDirectory();
  const LINES = 20_000;
  let running = true;
  let file = openSync(path, "a");
  const write = async (): Promise<void> => {
    for (let number = 0, stamp = 10; number < LINES; stamp++) {
      // A rotation between any two writes, some in the middle of a line's parts, and lines after the rename.
      const count = 1 + ((stamp * 7919) % 900);
      for (let index = 0; index < count && number < LINES; index++, number++) {
        writeSync(file, number % 10 === 0 ? line(1, `${number}`, "P") + line(1, "", "F") : line(1, `${number}`));
        if (index === count >> 1) await rename(path, `${path}.20260101-${String(stamp).padStart(6, "0")}`);
        if (index % 50 === 0) await setTimeout(0);
      }
      closeSync(file);
      file = openSync(path, "a");
    }
    closeSync(file);
    running = false;
  };
  const readAll = async (pauseMs: number): Promise<number> => {
    let text = "";
    for await (const chunk of chunks({ follow: true }, () => running)) {
      text += Buffer.from(chunk).toString();
      if (pauseMs > 0) await setTimeout(pauseMs);
    }
    const numbers = text.trimEnd().split("\n");
    return numbers.length === LINES ? numbers.findIndex((each, index) => each !== String(index)) : numbers.length;
  };
  const [, ...wrong] = await Promise.all([write(), readAll(0), readAll(3), readAll(20)]);
  t.same(wrong, [-1, -1, -1]);
});

t.test("parseLogLine() returns undefined for malformed lines", async (t) => {
  for (const text of ["", "hello", "2026-01-01T00:00:00Z stdout", "2026-01-01T00:00:00.0Z stdin F x", "a b c d"]) {
    t.equal(parseLogLine(text), undefined, text);
  }
  t.match(parseLogLine("2026-01-01T00:00:00.0Z stderr P:x text"), { stream: "stderr", partial: true, content: "text" });
});

t.test("200 followers share what they read, and each gets every line once", async (t) => {
  await writeFile(path, line(1, "0"));
  let running = true;
  const opened = Array.from({ length: 200 }, () => chunks({ follow: true }, () => running));
  const texts = Promise.all(
    opened.map(async (each, index) => {
      let text = "";
      for await (const chunk of each) {
        text += Buffer.from(chunk).toString();
        // Some fall behind: what others have read since must not count for them.
        if (index % 7 === 0) await setTimeout(index);
      }
      return text;
    }),
  );
  for (let number = 1; number < 200; number++) {
    await appendFile(path, line(number % 60, String(number)));
    if (number % 10 === 0) await setTimeout(7);
  }
  running = false;
  const expected = Array.from({ length: 200 }, (_, number) => `${number}\n`).join("");
  t.same(new Set(await texts), new Set([expected]));
});
