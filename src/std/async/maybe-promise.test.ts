import t from "tap";
import { andThen } from "./maybe-promise.ts";

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
