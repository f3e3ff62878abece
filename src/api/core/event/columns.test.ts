import t from "tap";
import { eventColumns } from "./columns.ts";
import type { Event } from "./schema.ts";

const now = Date.parse("2026-01-01T01:00:00Z");

t.test("eventColumns read both the deprecated fields and the series", async (t) => {
  const event: Event = {
    metadata: { name: "web.1", namespace: "default" },
    involvedObject: { kind: "Pod", name: "web", fieldPath: "spec.containers{a}" },
    reason: "BackOff",
    message: "Back-off restarting\n",
    source: { component: "svclet", host: "shop-1" },
    firstTimestamp: "2026-01-01T00:00:00Z",
    lastTimestamp: "2026-01-01T00:59:00Z",
    count: 4,
    type: "Warning",
  };
  const row = (e: Event) => eventColumns.map((column) => column.cell(e, now));
  t.same(row(event), [
    "60s",
    "Warning",
    "BackOff",
    "pod/web",
    "spec.containers{a}",
    "svclet, shop-1",
    "Back-off restarting",
    "60m",
    4,
    "web.1",
  ]);
  const series = { count: 9, lastObservedTime: "2026-01-01T00:59:50.000000Z" };
  t.same([row({ ...event, series })[0], row({ ...event, series })[8]], ["10s", 9]);
});
