/** JSON merge patch (RFC 7396): null removes, objects merge, everything else replaces. Does not change its inputs. */
import { isPlainObject, setMember } from "../value/plain-object.ts";

export function jsonMergePatch(current: unknown, patch: unknown): unknown {
  if (!isPlainObject(patch)) return patch;
  const result: Record<string, unknown> = {};
  if (isPlainObject(current)) for (const name of Object.keys(current)) setMember(result, name, current[name]);
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    if (value === null) delete result[name];
    else setMember(result, name, jsonMergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value));
  }
  return result;
}
