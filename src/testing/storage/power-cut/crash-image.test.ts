import t from "tap";
import { seededRandom } from "../../../std/crypto/random.ts";
import { CrashModel, type NameModel } from "./crash-image.ts";
import { type DiskOperation, ROOT_INODE } from "./disk-operations.ts";

const at = (name: string) => ({ directory: ROOT_INODE, name });
const create = (inode: number, name: string): DiskOperation => ({ type: "create", inode, kind: "file", at: at(name) });
const write = (inode: number, text: string, offset = 0): DiskOperation => {
  return { type: "write", inode, offset, bytes: Buffer.from(text) };
};
const sync = (inode: number): DiskOperation => ({ type: "sync", inode });

/** The different images of 200 cuts after `operations`. */
function imagesAfter(names: NameModel, operations: readonly DiskOperation[]): Set<string> {
  const images = Array.from({ length: 200 }, (_, seed) => {
    const model = new CrashModel(names);
    for (const operation of operations) model.apply(operation);
    const image = [...model.image(seededRandom(seed))].sort(([a], [b]) => (a < b ? -1 : 1));
    return image.map(([path, content]) => `${path}=${content.toString("latin1")}`).join(" ");
  });
  return new Set(images);
}

t.test("a synced file is in every image, and one that is not synced in some", async (t) => {
  const operations = [create(2, "a"), write(2, "one"), sync(2), create(3, "b"), write(3, "two")];
  for (const names of ["journal", "independent"] as const) {
    t.same(imagesAfter(names, operations), new Set(["a=one", "a=one b=", "a=one b=two"]));
  }
});

t.test("names change in order with a journal, and independently without", async (t) => {
  const operations: DiskOperation[] = [create(2, "a"), create(3, "b")];
  t.same(imagesAfter("journal", operations), new Set(["", "a=", "a= b="]));
  t.same(imagesAfter("independent", operations), new Set(["", "a=", "b=", "a= b="]));
});

t.test("the sync of a file commits other names with a journal only", async (t) => {
  const rename: DiskOperation = { type: "rename", inode: 2, at: at("a"), to: at("c") };
  const operations = [create(2, "a"), sync(2), rename, create(3, "b"), write(3, "x"), sync(3)];
  t.same(imagesAfter("journal", operations), new Set(["b=x c="]));
  t.same(imagesAfter("independent", operations), new Set(["a= b=x", "b=x c="]));
  t.same(imagesAfter("independent", [...operations, sync(ROOT_INODE)]), new Set(["b=x c="]));
});

t.test("writes that are not synced tear at the borders of sectors, and lose those before others", async (t) => {
  const operations = [create(2, "a"), sync(2), write(2, `${"1".repeat(512)}${"2".repeat(512)}`)];
  const [one, two, none] = ["1".repeat(512), "2".repeat(512), "\0".repeat(512)];
  t.same(imagesAfter("journal", operations), new Set(["a=", `a=${one}`, `a=${none}${two}`, `a=${one}${two}`]));
  const truncated: DiskOperation[] = [...operations, sync(2), { type: "truncate", inode: 2, size: 512 }];
  t.same(imagesAfter("journal", truncated), new Set([`a=${one}`, `a=${one}${two}`]));
});

t.test("a removed file is back in images of a cut before the sync of its directory", async (t) => {
  const operations: DiskOperation[] = [create(2, "a"), sync(ROOT_INODE), { type: "unlink", inode: 2, at: at("a") }];
  t.same(imagesAfter("journal", operations), new Set(["a=", ""]));
  t.same(imagesAfter("journal", [...operations, sync(ROOT_INODE)]), new Set([""]));
});
