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

/** AllAlpha and AllBeta apply to gates that are not set by name, but not to locked ones. */
function isGateEnabled(name: string, gate: Gate, settings: GateSettings): boolean {
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
    return [];
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
    return [...effectWarnings(gate, name, value), ...removalWarnings(gate, given, value)];
  });
}

function effectWarnings(gate: Gate, name: string, value: boolean): string[] {
  if (gate.effective === true || value === gate.default) return [];
  return [`Feature gate ${name}=${value} has no effect: ${gatesWithoutEffect.get(name) ?? OTHER_PROGRAM}`];
}

const OTHER_PROGRAM = "other programs read it";

function isGroupGate(name: string): boolean {
  return name === "AllAlpha" || name === "AllBeta";
}

function removalWarnings({ stage }: Gate, given: string, value: boolean): string[] {
  if (stage !== "GA" && stage !== "DEPRECATED") return [];
  return [`Setting ${stage} feature gate ${given}=${value}. It will be removed in a future release.`];
}
