/** The columns of `kubectl get events` (`printEvent`); both versions of Event use the core version's columns. */
import { column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatAge } from "../../columns/human-duration.ts";
import type { Column } from "../../kind.ts";
import type { Event } from "./schema.ts";

export const eventColumns: readonly Column<Event>[] = [
  column("Last Seen", (event, now) => formatAge(lastSeen(event), now)),
  column("Type", (event) => event.type ?? ""),
  column("Reason", (event) => event.reason ?? ""),
  column("Object", objectText),
  wideColumn("Subobject", (event) => event.involvedObject.fieldPath ?? ""),
  wideColumn("Source", sourceText),
  column("Message", (event) => (event.message ?? "").trim()),
  wideColumn("First Seen", (event, now) => formatAge(firstSeen(event), now)),
  wideColumn("Count", ({ series, count }) => (series === undefined ? count || 1 : (series.count ?? 0))),
  { ...nameColumn, priority: 1 },
];

function firstSeen(event: Event): string | undefined {
  return event.firstTimestamp ?? event.eventTime;
}

function lastSeen(event: Event): string | undefined {
  return event.series === undefined ? (event.lastTimestamp ?? firstSeen(event)) : event.series.lastObservedTime;
}

function objectText(event: Event): string {
  const { kind, name } = event.involvedObject;
  const lower = (kind ?? "").toLowerCase();
  return name === undefined || name === "" ? lower : `${lower}/${name}`;
}

function sourceText(event: Event): string {
  const component = event.source?.component || event.reportingComponent || "";
  const host = event.source?.host || event.reportingInstance || "";
  return host === "" ? component : `${component}, ${host}`;
}
