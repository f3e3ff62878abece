/** How strict a namespace is about its pods, as its labels say it. */
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

export interface LabelledPolicy {
  readonly policy: Policy;
  /** What is wrong with the labels; then what is enforced is restricted, and what is only told of is privileged. */
  readonly errors: readonly string[];
}

/** The policy of a namespace with these labels: what they leave open is as in `defaults`. */
export function policyOf(labels: Readonly<Record<string, string>> | undefined, defaults: Policy): LabelledPolicy {
  if (labels === undefined) return { policy: defaults, errors: [] };
  const errors: string[] = [];
  const wrong = (label: string, value: string, detail: string): void => {
    errors.push(`metadata.labels[${label}]: Invalid value: ${JSON.stringify(value)}: ${detail}`);
  };
  const said = (mode: Mode): LevelVersion => {
    const label = `pod-security.kubernetes.io/${mode}`;
    const level = labels[label];
    const version = labels[`${label}-version`];
    const isGood = level === undefined || isLevel(level);
    if (!isGood) wrong(label, level, `must be one of ${LEVELS.join(", ")}`);
    const parsed = version === undefined ? defaults[mode].version : parseVersion(version);
    if (parsed === undefined) wrong(`${label}-version`, version ?? "", 'must be "latest" or "v1.x"');
    return {
      level: isGood ? (level ?? defaults[mode].level) : mode === "enforce" ? "restricted" : "privileged",
      version: parsed ?? LATEST,
    };
  };
  return { policy: { enforce: said("enforce"), audit: said("audit"), warn: said("warn") }, errors };
}
