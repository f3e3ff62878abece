import t from "tap";
import { readLines } from "./lines.ts";

async function gather(body: AsyncIterable<Uint8Array>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of readLines(body)) all.push(line);
  return all;
}

async function split(...texts: string[]): Promise<string[]> {
  const body = (async function* () {
    for (const text of texts) yield Buffer.from(text, "latin1");
  })();
  return gather(body);
}

t.test("readLines() joins lines from chunks, and drops an incomplete last one", async (t) => {
  t.strictSame(await split("a\nb\n"), ["a", "b"]);
  t.strictSame(await split("a", "b", "c\nd", "\n\n\r\ne"), ["abc", "d"]);
  t.strictSame(await split("\xc3", "\xa4\n"), ["ä"]);
  t.strictSame(await split(), []);
});

t.test("readLines() rejects a line that is too long", async (t) => {
  const endless = (async function* () {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    for (;;) yield chunk;
  })();
  await t.rejects(gather(endless), { message: /longer than/ });
});
