import t from "tap";
import type { Event } from "./schema.ts";
import { validateEvent } from "./validation.ts";

function fieldsOf(texts: Partial<Event>): readonly string[] {
  const event: Event = {
    metadata: { name: "e", namespace: "default" },
    involvedObject: { namespace: "default" },
    eventTime: "2026-01-01T00:00:00.000000Z",
    reportingComponent: "example.com/c",
    reportingInstance: "i",
    action: "a",
    reason: "r",
    ...texts,
  };
  return validateEvent(event, "reportingController").map(({ field }) => field);
}

t.test("validateEvent() limits action, reason and reporting instance to 128 characters", async (t) => {
  for (const field of ["action", "reason", "reportingInstance"]) {
    for (const character of ["a", "é", "語", "\u{1f600}"]) {
      t.same(fieldsOf({ [field]: character.repeat(128) }), [], `${field} ${character}`);
      t.same(fieldsOf({ [field]: character.repeat(129) }), [field], `${field} ${character}`);
    }
    t.same(fieldsOf({ [field]: "" }), [field]);
  }
});

t.test("validateEvent() limits the message to 1024 bytes", async (t) => {
  t.same(fieldsOf({ message: "é".repeat(512) }), []);
  t.same(fieldsOf({ message: "é".repeat(513) }), ["message"]);
});
