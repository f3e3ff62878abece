import t from "tap";
import { aggregationEffects } from "./aggregation-effects.ts";
import { startServer } from "./support.ts";
for (const [n, e] of Object.entries(aggregationEffects(startServer))) t.test(n, e);
