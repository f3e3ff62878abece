import t from "tap";
import { CopiedBytes } from "./collect-copied.ts";

t.test("CopiedBytes collects young objects after each 4 MiB", async (t) => {
  const collections: object[] = [];
  const copied = new CopiedBytes((options) => collections.push(options));
  for (let count = 0; count < 255; count++) copied.add(16 * 1024);
  t.same(collections, []);
  copied.add(16 * 1024);
  t.same(collections, [{ type: "minor" }]);
  copied.add(40 * 2 ** 20);
  t.equal(collections.length, 2);
  new CopiedBytes(undefined).add(2 ** 30);
});
