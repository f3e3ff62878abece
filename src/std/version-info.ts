import { BUILD } from "./version.ts";

/** The response of `/version`. */
export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  readonly emulationMajor: string;
  readonly emulationMinor: string;
  readonly minCompatibilityMajor: string;
  readonly minCompatibilityMinor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", arm: "arm" };

/**
 * The API level is Kubernetes 1.33, or the emulated version, independent of the reported `gitVersion`. The minimum
 * compatibility version is one release older.
 */
export function versionInfo(gitVersion: string, emulatedVersion = "1.33"): VersionInfo {
  const [major = "", minor = ""] = emulatedVersion.split(".");
  return {
    major: "1",
    minor: "33",
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion,
    ...BUILD,
    goVersion: `node${process.version}`,
    compiler: "v8",
    platform: `${process.platform}/${ARCHITECTURES[process.arch] ?? process.arch}`,
  };
}
