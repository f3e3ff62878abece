import t from "tap";
import { testStore } from "../testing/storage/conformance.ts";
import { createMemoryStore } from "./memory.ts";

t.test("createMemoryStore() is a Store", (t) =>
  testStore(t, async (clock) => createMemoryStore({ clock }), { isEmbedded: true }),
);
