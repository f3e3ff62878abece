/** Parts of instants and spans of time: `getHours()` and its like. */
import { type FunctionDeclaration, functionOf, type Library, method } from "../functions.ts";
import type { CalendarParts, Duration, Timestamp } from "../values/time-value.ts";
import { durationType, intType, stringType, timestampType } from "../values/types.ts";

type Part = (parts: CalendarParts) => number;

function part(name: string, id: string, read: Part, inZone = `${id}_with_tz`): FunctionDeclaration {
  return functionOf(
    name,
    method(id, [timestampType], intType, (time: Timestamp) => BigInt(read(time.inZone("UTC")))),
    method(inZone, [timestampType, stringType], intType, (time: Timestamp, zone: string) => {
      return BigInt(read(time.inZone(zone)));
    }),
  );
}

function spanPart(name: string, id: string, nanos: bigint): FunctionDeclaration {
  return functionOf(
    name,
    method(id, [durationType], intType, (span: Duration) => span.nanos / nanos),
  );
}

export const time: Library = {
  functions: [
    part("getFullYear", "timestamp_to_year", ({ year }) => year),
    part("getMonth", "timestamp_to_month", ({ month }) => month),
    part("getDayOfYear", "timestamp_to_day_of_year", ({ yearDay }) => yearDay),
    part("getDayOfMonth", "timestamp_to_day_of_month", ({ day }) => day - 1),
    part("getDate", "timestamp_to_day_of_month_1_based", ({ day }) => day),
    part("getDayOfWeek", "timestamp_to_day_of_week", ({ weekday }) => weekday),
    part("getHours", "timestamp_to_hours", ({ hours }) => hours),
    part("getMinutes", "timestamp_to_minutes", ({ minutes }) => minutes),
    part("getSeconds", "timestamp_to_seconds", ({ seconds }) => seconds, "timestamp_to_seconds_tz"),
    part("getMilliseconds", "timestamp_to_milliseconds", ({ milliseconds }) => milliseconds),
    spanPart("getHours", "duration_to_hours", 3_600_000_000_000n),
    spanPart("getMinutes", "duration_to_minutes", 60_000_000_000n),
    spanPart("getSeconds", "duration_to_seconds", 1_000_000_000n),
    functionOf(
      "getMilliseconds",
      method("duration_to_milliseconds", [durationType], intType, (span: Duration) => span.nanos / 1_000_000n),
    ),
  ],
};
