import t from "tap";
import { andThen } from "./maybe-promise.ts";

t.test("andThen() goes on at once with an answer that is there, and later with one that is not", async (t) => {
  t.equal(
    andThen(1, (one) => one + 1),
    2,
  );
  const later = andThen(Promise.resolve(1), (one) => one + 1);
  t.type(later, Promise);
  t.equal(await later, 2);
  await t.rejects(Promise.resolve(andThen(Promise.reject(new Error("no answer")), () => 1)), { message: "no answer" });
});
