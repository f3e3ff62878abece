import t from "tap";
import { RateHistory, secondsUntil } from "./rate-history.ts";

t.test("RateHistory.rateOf() is the change between the oldest value of the window and the newest", async (t) => {
  const history = new RateHistory({ windowMs: 60_000, spacingMs: 5_000 });
  t.equal(history.rateOf("memory"), undefined);
  for (let at = 0; at <= 200_000; at += 500) history.add(at, new Map([["memory", 1000 - at / 1000]]));
  const rate = history.rateOf("memory");
  t.equal(rate?.perSecond, -1);
  t.ok((rate?.seconds ?? 0) > 50 && (rate?.seconds ?? 0) <= 60, `${rate?.seconds} s`);
  history.add(201_000, new Map([["disk", 5]]));
  t.equal(history.rateOf("disk"), undefined, "a single value has no rate");
});

t.test("secondsUntil() is undefined for a value that does not fall, and for more than a year", async (t) => {
  const rate = (perSecond: number) => ({ perSecond, seconds: 60 });
  t.equal(secondsUntil(100, rate(-10)), 10);
  t.equal(secondsUntil(0, undefined), 0);
  t.equal(secondsUntil(100, undefined), undefined);
  t.equal(secondsUntil(100, rate(1)), undefined);
  t.equal(secondsUntil(1e12, rate(-1)), undefined);
});
