/** Accessors of timestamps and durations, such as `getHours()`. */
import { type FunctionDeclaration, functionOf, type Library, method } from "../functions.ts";
import type { CalendarParts, Duration, Timestamp } from "../values/time-value.ts";
import { durationType, intType, stringType, timestampType } from "../values/types.ts";

type Part = (parts: CalendarParts) => number;

function timestampFunction(name: string, id: string, read: Part, inZone = `${id}_with_tz`): FunctionDeclaration {
  return functionOf(
    name,
    method(id, [timestampType], intType, (time: Timestamp) => BigInt(read(time.inZone("UTC")))),
    method(inZone, [timestampType, stringType], intType, (time: Timestamp, zone: string) => {
      return BigInt(read(time.inZone(zone)));
    }),
  );
}

function durationFunction(name: string, id: string, nanos: bigint): FunctionDeclaration {
  return functionOf(
    name,
    method(id, [durationType], intType, (duration: Duration) => duration.nanos / nanos),
  );
}

export const time: Library = {
  functions: [
    timestampFunction("getFullYear", "timestamp_to_year", ({ year }) => year),
    timestampFunction("getMonth", "timestamp_to_month", ({ month }) => month),
    timestampFunction("getDayOfYear", "timestamp_to_day_of_year", ({ yearDay }) => yearDay),
    timestampFunction("getDayOfMonth", "timestamp_to_day_of_month", ({ day }) => day - 1),
    timestampFunction("getDate", "timestamp_to_day_of_month_1_based", ({ day }) => day),
    timestampFunction("getDayOfWeek", "timestamp_to_day_of_week", ({ weekday }) => weekday),
    timestampFunction("getHours", "timestamp_to_hours", ({ hours }) => hours),
    timestampFunction("getMinutes", "timestamp_to_minutes", ({ minutes }) => minutes),
    timestampFunction("getSeconds", "timestamp_to_seconds", ({ seconds }) => seconds, "timestamp_to_seconds_tz"),
    timestampFunction("getMilliseconds", "timestamp_to_milliseconds", ({ milliseconds }) => milliseconds),
    durationFunction("getHours", "duration_to_hours", 3_600_000_000_000n),
    durationFunction("getMinutes", "duration_to_minutes", 60_000_000_000n),
    durationFunction("getSeconds", "duration_to_seconds", 1_000_000_000n),
    functionOf(
      "getMilliseconds",
      method("duration_to_milliseconds", [durationType], intType, (duration: Duration) => duration.nanos / 1_000_000n),
    ),
  ],
};
