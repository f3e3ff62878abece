import { createTextRecord } from "../std/collections/text-record.ts";

/** The headers by their names, repeated ones joined by commas; without the pseudo-headers of HTTP/2. */
export function joinHeaders(
  headers: Readonly<Record<string, string | readonly string[] | number | undefined>>,
): Record<string, string> {
  const joined = createTextRecord();
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":")) continue;
    joined[name] = typeof value === "string" ? value : Array.isArray(value) ? value.join(", ") : String(value);
  }
  return joined;
}
