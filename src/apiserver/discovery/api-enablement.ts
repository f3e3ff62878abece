/**
 * Selects the built-in kinds to serve from `--runtime-config` and the emulated version. The server itself also uses
 * kinds that it does not serve.
 */

import { betaKinds } from "../../api/beta-kinds.ts";
import { builtinKinds } from "../../api/builtin.ts";
import type { Kind } from "../../api/kind.ts";
import { previewKinds } from "../../api/preview-kinds.ts";
import { kubernetesGroup, svcGroup } from "../../api/scheme.ts";
import { isKubernetesApi, isRetiredVersion, priorityOf } from "./local-api-services.ts";

export interface ApisConfig {
  /** `api/beta` → `true`, `apps/v1` → `false`, … */
  readonly runtimeConfig: Readonly<Record<string, string>>;
  /** `--emulated-version`: `1.33`. */
  readonly emulatedVersion: string;
  /** Whether later versions of a served beta API are served too. */
  readonly forwardCompatible: boolean;
  /** Whether `runtimeConfig` may enable APIs that were introduced after the emulated version. */
  readonly runtimeConfigForwardCompatible: boolean;
}

interface FeatureState {
  readonly name: string;
  readonly enabled: boolean;
}

export interface ServedApis {
  readonly kinds: readonly Kind[];
  /** Warnings for the log. */
  readonly warnings: readonly string[];
}

/** In the order of application: later ones take precedence. */
const STAGES: readonly (readonly [key: string, version: RegExp])[] = [
  ["api/all", /^/],
  ["api/ga", /^v\d+$/],
  ["api/beta", /^v\d+beta\d+$/],
  ["api/alpha", /^v\d+alpha\d+$/],
];
const LEGACY_KEY = "api/legacy";

/** Throws one sentence with the invalid entry of `--runtime-config`. Gates that `features` lacks are off. */
export function selectServedApis(config: ApisConfig, features: readonly FeatureState[] = []): ServedApis {
  const all = [...builtinKinds, ...betaKinds, ...previewKinds];
  const entries = parseEntries(config.runtimeConfig, all);
  // As in Kubernetes, which accepts each other value, even if little is served then.
  if (config.runtimeConfig["api/all"] === "false" && Object.keys(config.runtimeConfig).length === 1)
    throw new Error("Cannot use --runtime-config=api/all=false alone: no API is enabled; add those to serve");
  const served = new Set<Kind>(builtinKinds);
  const enable = (kinds: readonly Kind[], on: boolean): void => {
    for (const kind of kinds)
      if (on) served.add(kind);
      else served.delete(kind);
  };
  for (const [key, version] of STAGES) {
    const value = config.runtimeConfig[key];
    if (value !== undefined)
      enable(
        all.filter((kind) => version.test(kind.version)),
        value === "true",
      );
  }
  for (const entry of entries)
    if (entry.resource === undefined || entry.on) enable(kindsOfVersion(entry, all), entry.on);
  for (const entry of entries) if (entry.resource !== undefined) enable(kindsOfResource(entry, all), entry.on);
  checkEmulation(config, entries, all);
  const requested = new Set(entries.filter(({ on }) => on).flatMap((entry) => kindsOfResource(entry, all)));
  const isInEmulatedVersion = (kind: Kind): boolean => {
    if (!isIntroducedAfter(kind, config.emulatedVersion)) return true;
    if (config.runtimeConfigForwardCompatible && requested.has(kind)) return true;
    return config.forwardCompatible && betaKinds.some((beta) => served.has(beta) && isSameResource(beta, kind));
  };
  const selected = all
    .filter((kind) => served.has(kind) && isInEmulatedVersion(kind))
    .sort((a, b) => priorityOf(b).group - priorityOf(a).group);
  const gates = new Set(features.filter(({ enabled }) => enabled).map(({ name }) => name));
  const kinds = selected.filter(({ featureGate }) => featureGate === undefined || gates.has(featureGate));
  const left = selected.filter((kind) => !kinds.includes(kind));
  const later = all.filter((kind) => served.has(kind) && !selected.includes(kind));
  return { kinds, warnings: [...warnings(config), ...emulationWarning(config, later), ...left.map(gateWarning)] };
}

interface RuntimeConfigEntry {
  readonly text: string;
  readonly group: string;
  /** Empty for all versions. */
  readonly version: string;
  /** Undefined for the whole version. */
  readonly resource: string | undefined;
  readonly on: boolean;
}

/** Those of a group come first: those of its versions take precedence. */
function parseEntries(runtimeConfig: ApisConfig["runtimeConfig"], all: readonly Kind[]): readonly RuntimeConfigEntry[] {
  const stages = new Set([LEGACY_KEY, ...STAGES.map(([key]) => key)]);
  return Object.entries(runtimeConfig)
    .filter(([key]) => !stages.has(key))
    .map(([key, value]) => parseEntry(key, value === "true", all))
    .sort((a, b) => Number(a.version !== "") - Number(b.version !== ""));
}

function parseEntry(key: string, on: boolean, all: readonly Kind[]): RuntimeConfigEntry {
  const text = `${key}=${on}`;
  const parts = key.split("/");
  // The core group has an empty name: `v1`, `v1/pods`, or, as in its paths, `api/v1`, `api/v1/pods`.
  const isCore = /^v\d/.test(parts[0] ?? "") || parts[0] === "api";
  const [group = "", version = "", resource] = isCore ? ["", ...parts.slice(parts[0] === "api" ? 1 : 0)] : parts;
  const entry: RuntimeConfigEntry = { text, group: svcGroup(group), version, resource, on };
  const error = (why: string) => new Error(`Cannot use --runtime-config=${text}: ${why}`);
  const kinds = kindsOfVersion(entry, all);
  // A configuration of an earlier release may name it.
  if (kinds.length === 0 && isRetiredVersion(group, version)) return entry;
  if (!isKubernetesApi(group) && !all.some((kind) => kind.group === entry.group)) {
    throw error(`there is no API group ${JSON.stringify(group)}`);
  }
  if (kinds.length === 0) {
    if (version !== "" && !isKubernetesApi(group, version))
      throw error(`group ${JSON.stringify(group)} has no version ${version}`);
    if (on) throw error(`this build does not have that ${version === "" ? "group" : "version"}`);
  } else if (resource !== undefined && kindsOfResource(entry, all).length === 0) {
    throw error(`${key.slice(0, -resource.length - 1)} has no resource ${resource}`);
  }
  return entry;
}

function kindsOfVersion({ group, version }: RuntimeConfigEntry, all: readonly Kind[]): readonly Kind[] {
  return all.filter((kind) => kind.group === group && (version === "" || kind.version === version));
}

function kindsOfResource(entry: RuntimeConfigEntry, all: readonly Kind[]): readonly Kind[] {
  return kindsOfVersion(entry, all).filter((kind) => kind.plural === entry.resource);
}

function isSameResource(a: Kind, b: Kind): boolean {
  return a.group === b.group && a.plural === b.plural;
}

/** Throws when an entry enables an API that was introduced after the emulated version. */
function checkEmulation(config: ApisConfig, entries: readonly RuntimeConfigEntry[], all: readonly Kind[]): void {
  if (config.runtimeConfigForwardCompatible) return;
  for (const entry of entries) {
    if (!entry.on) continue;
    const kindsOfEntry = entry.resource === undefined ? kindsOfVersion(entry, all) : kindsOfResource(entry, all);
    const later = kindsOfEntry.filter((kind) => isIntroducedAfter(kind, config.emulatedVersion));
    if (later.length === 0 || later.length < kindsOfEntry.length) continue;
    throw new Error(
      `Cannot use --runtime-config=${entry.text} with --emulated-version=${config.emulatedVersion}: it was introduced in ` +
        `${later[0]?.since}; --runtime-config-emulation-forward-compatible=true allows it`,
    );
  }
}

function isIntroducedAfter({ since }: Kind, emulatedVersion: string): boolean {
  return since !== undefined && minorOf(since) > minorOf(emulatedVersion);
}

function minorOf(version: string): number {
  return Number(version.split(".")[1]);
}

function emulationWarning({ emulatedVersion }: ApisConfig, later: readonly Kind[]): readonly string[] {
  if (later.length === 0) return [];
  const names = later.map(({ group, version, plural }) => `${kubernetesGroup(group)}/${version}/${plural}`);
  return [`--emulated-version=${emulatedVersion} leaves out APIs that were introduced later: ${names.join(", ")}`];
}

function gateWarning({ group, version, plural, featureGate }: Kind): string {
  return `--runtime-config: ${kubernetesGroup(group)}/${version}/${plural} is not served: the feature gate ${featureGate} is off`;
}

function warnings({ runtimeConfig }: ApisConfig): readonly string[] {
  return runtimeConfig[LEGACY_KEY] === undefined
    ? []
    : ["--runtime-config: api/legacy is deprecated and has no effect"];
}
