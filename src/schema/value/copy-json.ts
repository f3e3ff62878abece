/** Copies of JSON values, which may be changed when the originals are frozen. */
import { isPlainObject, setMember } from "./plain-object.ts";

/** As `JSON.parse` would return its text: without members that are undefined. */
export function copyJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyJson);
  if (!isPlainObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member !== undefined) setMember(copy, name, copyJson(member));
  }
  return copy;
}
