import t from "tap";
import { ResizeDecoder } from "./resize-decoder.ts";

function decodeAll(...texts: readonly string[]): readonly unknown[] {
  const decoder = new ResizeDecoder();
  return texts.flatMap((text) => decoder.decode(Buffer.from(text)));
}

t.test("sizes are read as Go's decoder reads them, also when they are split or joined", async (t) => {
  const size = { Width: 80, Height: 24 };
  t.same(decodeAll('{"Width":80,"Height":24}'), [size]);
  t.same(decodeAll('{"Width":80,', '"Height":24}\n{"width":1,"HEIGHT":2,"more":"x"}'), [size, { Width: 1, Height: 2 }]);
  t.same(decodeAll('{"Width":null}'), [{ Width: 0, Height: 0 }]);
});

t.test("garbage ends the reading of sizes", async (t) => {
  const good = '{"Width":80,"Height":24}';
  for (const bad of ["garbage", "[1]", '{"Width":65536}', '{"Width":-1}', '{"Width":1.5}', '{"Width":"a"}', "{bad}"]) {
    t.same(decodeAll(bad, good), [], bad);
  }
  t.same(decodeAll(`{"a":"${"x".repeat(2000)}`, `"}${good}`), [], "an object without an end");
});
