import t from "tap";
import { dayOf, startOfDay } from "./legacy-tokens.ts";

t.test("startOfDay() accepts only dates", (t) => {
  const noon = Date.UTC(2024, 1, 29, 12);
  t.equal(dayOf(noon), "2024-02-29");
  t.equal(startOfDay("2024-02-29"), Date.UTC(2024, 1, 29));
  for (const none of [undefined, "", "2025-02-29", "2024-2-29", "2024-02-29T00:00:00Z", "today", "2024-13-01"]) {
    t.equal(startOfDay(none), undefined, String(none));
  }
  t.end();
});
