import t from "tap";
import { andThen, forEachInOrder, type MaybePromise } from "./maybe-promise.ts";

t.test("andThen() calls its callback synchronously with a value, and later with a promise's", async (t) => {
  t.equal(
    andThen(1, (one) => one + 1),
    2,
  );
  const later = andThen(Promise.resolve(1), (one) => one + 1);
  t.type(later, Promise);
  t.equal(await later, 2);
  await t.rejects(Promise.resolve(andThen(Promise.reject(new Error("rejected")), () => 1)), { message: "rejected" });
});

t.test("forEachInOrder() waits for each promise before the next item, and is synchronous without", async (t) => {
  const seen: number[] = [];
  const work = (item: number): MaybePromise<void> =>
    item === 2 ? Promise.resolve().then(() => void seen.push(item)) : void seen.push(item);
  t.equal(forEachInOrder([1, 3], work), undefined);
  await forEachInOrder([1, 2, 3], work);
  t.same(seen, [1, 3, 1, 2, 3]);
});
