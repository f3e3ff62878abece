import t from "tap";
import { setItemDefaults } from "./defaults.ts";
import { validateLimitRange } from "./validation.ts";

t.test("resources whose names every object inherits have no other amounts", async (t) => {
  const item = setItemDefaults({ type: "Container", max: { constructor: "1" }, min: { cpu: "1" } });
  const details = validateLimitRange({ spec: { limits: [item] } }).map(({ detail }) => detail);
  t.match(details[0], /must be a standard resource type/);
  t.notMatch(details.join(), /greater than/);
});
