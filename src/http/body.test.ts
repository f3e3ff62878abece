import t from "tap";
import { readBody } from "./body.ts";
import { HttpError } from "./http-error.ts";
import { makeRequest } from "./request.ts";

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

t.test("readBody() joins what comes and is content with nothing", async (t) => {
  t.equal(String(await readBody({ headers: {}, body: pieces("ab", "", "cd") }, 4)), "abcd");
  t.equal(String(await readBody(makeRequest({ path: "/", body: "x" }), 4)), "x");
  t.equal((await readBody(makeRequest({ path: "/" }), 4)).length, 0);
});

t.test("readBody() refuses a body that is too long, told or not, without reading on", async (t) => {
  let read = 0;
  const endless = (async function* () {
    for (;;) {
      read++;
      yield new Uint8Array(10);
    }
  })();
  await t.rejects(readBody({ headers: {}, body: endless }, 25), { code: 413, reason: "RequestEntityTooLarge" });
  t.equal(read, 3);
  const told = { headers: { "content-length": "26" }, body: pieces("never read") };
  await t.rejects(readBody(told, 25), { message: "Request entity too large: limit is 25" });
});

t.test("readBody() takes bodies as they come, whatever their encoding, and reports broken ones", async (t) => {
  t.equal(String(await readBody({ headers: { "content-encoding": "gzip" }, body: pieces("x") }, 5)), "x");
  const broken = (async function* () {
    yield new Uint8Array(1);
    throw new Error("reset");
  })();
  await t.rejects(
    readBody({ headers: {}, body: broken }, 5),
    new HttpError(400, "BadRequest", "the request body could not be read to its end"),
  );
});
