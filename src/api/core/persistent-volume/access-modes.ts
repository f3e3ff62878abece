/** How volumes may be mounted; the same for volumes and for claims to them. */
import { type FieldError, forbiddenField, notSupported } from "../../../schema/validation/field-error.ts";

const MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"] as const;

/** That there is at least one is the caller's to demand. */
export function validateAccessModes(modes: readonly string[], path: string): readonly FieldError[] {
  const known: readonly string[] = MODES;
  const unknown = modes.filter((mode) => !known.includes(mode)).map((mode) => notSupported(path, mode, MODES));
  const others = modes.some((mode) => mode !== "ReadWriteOncePod" && known.includes(mode));
  if (!modes.includes("ReadWriteOncePod") || !others) return unknown;
  return [...unknown, forbiddenField(path, "may not use ReadWriteOncePod with other access modes")];
}

const short = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
] as const;

/** As tables show them: `RWO,ROX`. */
export function accessModesText(modes: readonly string[] = []): string {
  return short.flatMap(([mode, text]) => (modes.includes(mode) ? [text] : [])).join(",");
}
