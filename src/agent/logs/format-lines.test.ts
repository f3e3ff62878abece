import t from "tap";
import { LineFormatter, type LineOptions } from "./format-lines.ts";

const TIME = "2026-01-01T00:00:02";
const format = (lines: string, options: Partial<LineOptions> = {}): string =>
  new LineFormatter({ since: undefined, timestamps: false, ...options }).format(Buffer.from(lines)).toString();

t.test("LineFormatter removes the runtime's prefix and skips malformed lines", async (t) => {
  for (const [line, text] of [
    ["2026-01-01T00:00:02.1Z stdout F text\n", "text\n"],
    ["2026-01-01T00:00:02.1+01:00 stderr F text with  spaces \n", "text with  spaces \n"],
    ["2026-01-01T00:00:02.1Z stdout P part\n", "part"],
    ["2026-01-01T00:00:02.1Z stdout F:x text\n", "text\n"],
    ["2026-01-01T00:00:02.1Z stdout F \n", "\n"],
    ["2026-01-01T00:00:02.1Z stdout F\n", "\n"],
    ["2026-01-01T00:00:02.1Z stdout P \n", ""],
    ["2026-01-01T00:00:02.1Z stdout F incomplete", "incomplete"],
    ["2026-01-01T00:00:02.1Z stdout F é\u{1f600}\n", "é\u{1f600}\n"],
    ["2026-01-01T00:00:02.1Z stdin F text\n", ""],
    ["2026-01-01T00:00:02.1Z stdout X text\n", ""],
    ["2026-01-01T00:00:02.1Z stdout FF text\n", ""],
    ["2026-01-01T00:00:02.1Z stdou", ""],
    ["2026-01-01T00:00:02.1Z stdout ", ""],
    ["text\n\n \n", ""],
  ] as const) {
    t.equal(format(line), text, JSON.stringify(line));
    t.equal(format(`${line.trimEnd()}\n${TIME}.1Z stdout F next\n`).endsWith("next\n"), true, "the next line follows");
  }
});

t.test("LineFormatter writes nine digits of a second, and no timestamp within a line", async (t) => {
  const timestamps = true;
  t.equal(format(`${TIME}.12Z stdout F a\n`, { timestamps }), `${TIME}.120000000Z a\n`);
  t.equal(format(`${TIME}Z stdout F a\n`, { timestamps }), `${TIME}.000000000Z a\n`);
  t.equal(format(`${TIME}.123456789+01:00 stdout F a\n`, { timestamps }), `${TIME}.123456789+01:00 a\n`);
  const parts = `${TIME}.1Z stdout P a\n${TIME}.2Z stdout P b\n${TIME}.3Z stdout F c\n${TIME}.4Z stdout F d\n`;
  t.equal(format(parts, { timestamps }), `${TIME}.100000000Z abc\n${TIME}.400000000Z d\n`);
  const formatter = new LineFormatter({ since: undefined, timestamps });
  const chunks = parts.split(/(?<=\n)/).map((line) => formatter.format(Buffer.from(line)).toString());
  t.equal(chunks.join(""), `${TIME}.100000000Z abc\n${TIME}.400000000Z d\n`, "the same in chunks");
  const many = `${TIME}Z stdout F \n`.repeat(1000);
  t.equal(format(many, { timestamps }), `${TIME}.000000000Z \n`.repeat(1000), "longer than the lines of the log");
});

t.test("LineFormatter skips lines before a time, and those of the other stream", async (t) => {
  const lines = [`${TIME}.4Z stdout F a\n`, `${TIME}.5Z stderr F b\n`, "2026-01-01T01:00:03+01:00 stdout F c\n"].join(
    "",
  );
  t.equal(format(lines, { since: Date.UTC(2026, 0, 1, 0, 0, 2, 500) }), "b\nc\n");
  t.equal(format(lines, { since: Date.UTC(2026, 0, 1, 0, 0, 3) }), "c\n");
  t.equal(format(lines, { since: Date.UTC(2026, 0, 1, 0, 0, 4) }), "");
  t.equal(format(lines, { stream: "stderr" }), "b\n");
});
