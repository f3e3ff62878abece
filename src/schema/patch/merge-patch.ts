/**
 * JSON merge patch (RFC 7396): null removes, objects merge, everything else replaces. As in Kubernetes' library, nulls
 * of objects within a new list are removed too. Does not change its inputs.
 */
import { getMember, isPlainObject, setMember } from "../value/plain-object.ts";

export function jsonMergePatch(current: unknown, patch: unknown): unknown {
  if (!isPlainObject(current)) return withoutNulls(patch);
  if (!isPlainObject(patch)) return patch;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(current)) setMember(result, name, current[name]);
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    if (value === null) delete result[name];
    else setMember(result, name, jsonMergePatch(getMember(result, name), value));
  }
  return result;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isPlainObject(value)) return value;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (value[name] !== null) setMember(result, name, withoutNulls(value[name]));
  }
  return result;
}
