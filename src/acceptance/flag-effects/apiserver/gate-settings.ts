/** Settings of feature gates for the tests of their effects. */
import { apiServerOptions } from "../../../apiserver/config/options.ts";
import { parseFlags, type Settings } from "./support.ts";

/** The value that the test sets, and the other flags. */
export type Gates = Readonly<Record<string, boolean>>;

export function withGates(gates: Gates, settings: Settings = {}): Settings {
  const words = Object.entries(gates).map(([name, value]) => `${name}=${value}`);
  return words.length === 0 ? settings : { ...settings, "feature-gates": words.join(",") };
}

export function configWith(gates: Gates, settings: Settings = {}) {
  const { flags, gates: parsed, version, given } = parseFlags(withGates(gates, settings));
  return apiServerOptions(flags, parsed, version, given);
}
