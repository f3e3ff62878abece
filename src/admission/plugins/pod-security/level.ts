/** The pod security levels of a namespace, as its labels set them. */
import { formatVersion, LATEST, type PolicyVersion, parseVersion } from "./version.ts";

export const LEVELS = ["privileged", "baseline", "restricted"] as const;
export type Level = (typeof LEVELS)[number];

export const MODES = ["enforce", "audit", "warn"] as const;
export type Mode = (typeof MODES)[number];

export interface LevelVersion {
  readonly level: Level;
  readonly version: PolicyVersion;
}

export type Policy = Readonly<Record<Mode, LevelVersion>>;

/** `restricted:v1.31` */
export function formatLevel({ level, version }: LevelVersion): string {
  return `${level}:${formatVersion(version)}`;
}

export function isStricter(a: LevelVersion, b: LevelVersion): boolean {
  return LEVELS.indexOf(a.level) > LEVELS.indexOf(b.level);
}

export function isLevel(text: string): text is Level {
  return (LEVELS as readonly string[]).includes(text);
}

export interface ParsedPolicy {
  readonly policy: Policy;
  /**
   * Invalid labels. An invalid enforce level is treated as restricted, an invalid audit or warn level as privileged.
   */
  readonly errors: readonly string[];
}

/** The policy of a namespace with these labels; `defaults` apply to what they do not set. */
export function parsePolicy(labels: Readonly<Record<string, string>> | undefined, defaults: Policy): ParsedPolicy {
  if (labels === undefined) return { policy: defaults, errors: [] };
  const errors: string[] = [];
  const addError = (label: string, value: string, detail: string): void => {
    errors.push(`metadata.labels[${label}]: Invalid value: ${JSON.stringify(value)}: ${detail}`);
  };
  const parseMode = (mode: Mode): LevelVersion => {
    const label = `pod-security.kubernetes.io/${mode}`;
    const level = labels[label];
    const version = labels[`${label}-version`];
    const isGood = level === undefined || isLevel(level);
    if (!isGood) addError(label, level, `must be one of ${LEVELS.join(", ")}`);
    const parsed = version === undefined ? defaults[mode].version : parseVersion(version);
    if (parsed === undefined) addError(`${label}-version`, version ?? "", 'must be "latest" or "v1.x"');
    return {
      level: isGood ? (level ?? defaults[mode].level) : mode === "enforce" ? "restricted" : "privileged",
      version: parsed ?? LATEST,
    };
  };
  const [enforce, audit, warn] = [parseMode("enforce"), parseMode("audit"), parseMode("warn")];
  return { policy: { enforce, audit, warn: warnsAsEnforced(labels, enforce, warn) ?? warn }, errors };
}

/** Namespaces with a stricter level to enforce, and none to warn, warn of templates whose pods they will refuse. */
function warnsAsEnforced(
  labels: Readonly<Record<string, string>>,
  enforce: LevelVersion,
  warn: LevelVersion,
): LevelVersion | undefined {
  const prefix = "pod-security.kubernetes.io";
  if (!isLevel(labels[`${prefix}/enforce`] ?? "") || labels[`${prefix}/warn`] !== undefined) return undefined;
  if (!isStricter(enforce, warn)) return undefined;
  return labels[`${prefix}/warn-version`] === undefined ? enforce : { ...enforce, version: warn.version };
}
