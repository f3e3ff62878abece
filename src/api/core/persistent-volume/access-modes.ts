/** Access modes of volumes and claims. */
import { type FieldError, forbiddenField, notSupported, validateEach } from "../../../schema/validation/field-error.ts";

const MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"] as const;

/** Callers check that there is at least one mode. */
export function validateAccessModes(modes: readonly string[], path: string): readonly FieldError[] {
  const supported: readonly string[] = MODES;
  const unsupported = validateEach(modes, (mode) =>
    supported.includes(mode) ? [] : [notSupported(path, mode, MODES)],
  );
  const others = modes.some((mode) => mode !== "ReadWriteOncePod" && supported.includes(mode));
  if (!modes.includes("ReadWriteOncePod") || !others) return unsupported;
  return [...unsupported, forbiddenField(path, "may not use ReadWriteOncePod with other access modes")];
}

const short = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
] as const;

/** The text of table cells: `RWO,ROX`. */
export function accessModesText(modes: readonly string[] = []): string {
  return short.flatMap(([mode, text]) => (modes.includes(mode) ? [text] : [])).join(",");
}
