/** Feature gates and their settings. */
import { findNearest } from "./distance.ts";
import { gatesWithoutEffect } from "./gate-tables/without-effect.ts";
import type { GateSettings } from "./types/gate-settings.ts";

export type GateStage = "ALPHA" | "BETA" | "GA" | "DEPRECATED";

export interface Gate {
  readonly stage: GateStage;
  readonly default: boolean;
  /** The value cannot be changed. */
  readonly locked?: boolean;
  /** This program reads the gate. Settings of other gates change only what the program reports. */
  readonly effective?: true;
  /** What this build lacks of the feature: the gate is off, and nothing can set it to true. */
  readonly missing?: string;
  /** Why this build always has the feature: the gate is on, and nothing can set it to false. */
  readonly permanent?: string;
}

export type GateTable = Readonly<Record<string, Gate>>;

/** The gates of a program, as code below the programs reads them. */
export interface FeatureLookup {
  /** Whether the gate exists and is enabled. */
  has(name: string): boolean;
}

/** The name in this program of a gate with its Kubernetes name. */
export function normaliseGateName(name: string): string {
  return name.replaceAll("Kubelet", "Svclet");
}

/** The gates of one program with their settings. Immutable. */
export class FeatureGates implements FeatureLookup {
  readonly #enabled: ReadonlyMap<string, boolean>;
  readonly #table: GateTable;

  constructor(table: GateTable, settings: GateSettings = {}) {
    this.#table = table;
    this.#enabled = new Map(Object.entries(table).map(([name, gate]) => [name, isGateEnabled(name, gate, settings)]));
  }

  /** Throws for an unknown name: a misspelt gate must not count as disabled. */
  enabled(name: string): boolean {
    const on = this.#enabled.get(name);
    if (on === undefined) throw new RangeError(`Cannot read feature gate ${name}: this program has no such gate`);
    return on;
  }

  /** Whether the gate exists and is enabled, for code that programs with different gates share. */
  has(name: string): boolean {
    return this.#enabled.get(name) ?? false;
  }

  /** All gates in name order. */
  list(): readonly { readonly name: string; readonly stage: GateStage; readonly enabled: boolean }[] {
    return Object.entries(this.#table)
      .map(([name, { stage }]) => ({ name, stage, enabled: this.#enabled.get(name) ?? false }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/**
 * AllAlpha and AllBeta apply to gates that are not set by name, but not to locked ones. Gates whose feature this build
 * lacks are off, so that metrics report what the program does.
 */
function isGateEnabled(name: string, gate: Gate, settings: GateSettings): boolean {
  if (gate.missing !== undefined && gate.effective !== true) return false;
  if (gate.permanent !== undefined && gate.effective !== true) return true;
  if (gate.locked) return gate.default;
  const set = findSetting(settings, name);
  if (set !== undefined) return set;
  if (isGroupGate(name)) return gate.default;
  if (gate.stage === "ALPHA" && settings.AllAlpha !== undefined) return settings.AllAlpha;
  if (gate.stage === "BETA" && settings.AllBeta !== undefined) return settings.AllBeta;
  return gate.default;
}

function findSetting(settings: GateSettings, name: string): boolean | undefined {
  if (Object.hasOwn(settings, name)) return settings[name];
  const other = Object.keys(settings).find((key) => normaliseGateName(key) === name);
  return other === undefined ? undefined : settings[other];
}

/**
 * The problems of `settings`, one sentence each. `known` contains the gates of all components: one list of gates can
 * then configure all of them.
 */
export function gateProblems(table: GateTable, settings: GateSettings, known: GateTable = table): string[] {
  return Object.entries(settings).flatMap(([given, value]) => {
    const name = normaliseGateName(given);
    if (!Object.hasOwn(table, name) && !Object.hasOwn(known, name)) {
      const guess = findNearest(name, Object.keys({ ...known, ...table }));
      return [`unknown feature gate ${given}${guess === undefined ? "" : `: did you mean ${guess}?`}`];
    }
    const gate = table[name];
    if (gate?.locked && value !== gate.default) {
      return [`cannot set feature gate ${given} to ${value}, feature is locked to ${gate.default}`];
    }
    const { missing, permanent, effective } = gate ?? known[name] ?? {};
    if (permanent !== undefined && !effective && !value) {
      return [`feature gate ${given} cannot be set to false: this build always has its feature, ${permanent}`];
    }
    if (missing === undefined || effective || !value) return [];
    return [`feature gate ${given} cannot be set to true: this build lacks its feature, ${missing}`];
  });
}

/** Warnings for settings without effect, and for GA and deprecated gates, which will be removed. */
export function gateWarnings(table: GateTable, settings: GateSettings): string[] {
  return Object.entries(settings).flatMap(([given, value]) => {
    const name = normaliseGateName(given);
    const gate = Object.hasOwn(table, name) ? table[name] : undefined;
    if (gate === undefined) {
      return [`Feature gate ${given}=${value} has no effect: it belongs to another program or release`];
    }
    return [...effectWarnings(table, name, value), ...removalWarnings(gate, given, value)];
  });
}

function effectWarnings(table: GateTable, name: string, value: boolean): string[] {
  const gate = table[name]!;
  if (isGroupGate(name)) {
    const left = value ? leftOut(table, gate.stage) : [];
    if (left.length === 0) return [];
    return [`Feature gate ${name}=true leaves out gates whose features this build lacks: ${left.join(", ")}`];
  }
  if (gate.effective === true || value === (gate.missing === undefined && gate.default)) return [];
  return [`Feature gate ${name}=${value} has no effect: ${gatesWithoutEffect.get(name) ?? OTHER_PROGRAM}`];
}

const OTHER_PROGRAM = "other programs read it";

function leftOut(table: GateTable, stage: GateStage): readonly string[] {
  return Object.keys(table).filter((name) => {
    const gate = table[name]!;
    return gate.stage === stage && gate.missing !== undefined && gate.effective !== true;
  });
}

function isGroupGate(name: string): boolean {
  return name === "AllAlpha" || name === "AllBeta";
}

function removalWarnings({ stage }: Gate, given: string, value: boolean): string[] {
  if (stage !== "GA" && stage !== "DEPRECATED") return [];
  return [`Setting ${stage} feature gate ${given}=${value}. It will be removed in a future release.`];
}
