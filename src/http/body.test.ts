import t from "tap";
import { bytesLeftPerCall } from "../testing/std/heap-growth.ts";
import { readBody } from "./body.ts";
import { HttpError } from "./http-error.ts";
import { makeRequest } from "./request.ts";

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

t.test("readBody() joins chunks and accepts an empty body", async (t) => {
  t.equal(String(await readBody({ headers: {}, body: chunks("ab", "", "cd") }, 4)), "abcd");
  t.equal(String(await readBody(makeRequest({ path: "/", body: "x" }), 4)), "x");
  t.equal((await readBody(makeRequest({ path: "/" }), 4)).length, 0);
});

t.test("readBody() refuses a body that is too long, with or without content-length, without reading on", async (t) => {
  let read = 0;
  const endless = (async function* () {
    for (;;) {
      read++;
      yield new Uint8Array(10);
    }
  })();
  await t.rejects(readBody({ headers: {}, body: endless }, 25), { code: 413, reason: "RequestEntityTooLarge" });
  t.equal(read, 3);
  const declared = { headers: { "content-length": "26" }, body: chunks("never read") };
  await t.rejects(readBody(declared, 25), { message: "Request entity too large: limit is 25" });
});

t.test("readBody() ignores content-encoding, and throws 400 for a body that breaks off", async (t) => {
  t.equal(String(await readBody({ headers: { "content-encoding": "gzip" }, body: chunks("x") }, 5)), "x");
  const broken = (async function* () {
    yield new Uint8Array(1);
    throw new Error("reset");
  })();
  await t.rejects(
    readBody({ headers: {}, body: broken }, 5),
    new HttpError(400, "BadRequest", "the request body could not be read to its end"),
  );
});

t.test("readBody() takes memory for the bytes, not for the chunks", async (t) => {
  const kept: Buffer[] = [];
  async function* single() {
    for (let read = 0; read < 5; read++) {
      const bytes = Buffer.alloc(64 * 1024, "x");
      for (let at = 0; at < 4096; at++) yield bytes.subarray(at, at + 1);
    }
  }
  const read = async () => void kept.push(await readBody({ headers: {}, body: single() }, 100_000));
  const left = await bytesLeftPerCall(read, { calls: 10 });
  t.equal(String(kept[0]), "x".repeat(5 * 4096));
  t.ok(left < 200_000, `${left} bytes for 20,480`);
});
