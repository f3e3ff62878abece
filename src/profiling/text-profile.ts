/** Profiles as text, which Go serves for `debug=1`: the formats of `runtime/pprof`. */
import type { StackFrame, StackProfile } from "./pprof.ts";

/** The period in the first line of profiles of contention: values are nanoseconds. */
const CYCLES = "cycles/second=1000000000";

export function formatProfile(name: string, { samples, period }: StackProfile): string {
  const stacks = new AddressTable();
  const sum = (index: number): number =>
    samples.reduce((total, { values }) => total + Math.round(values[index] ?? 0), 0);
  if (name === "heap" || name === "allocs") {
    const head = `heap profile: ${sum(0)}: ${sum(1)} [${sum(0)}: ${sum(1)}] @ heap/${period.value}`;
    const lines = samples.map(({ values: [objects = 0, bytes = 0], frames }) =>
      stacks.format(`${objects}: ${bytes} [${objects}: ${bytes}]`, frames),
    );
    return [head, ...lines, ""].join("\n");
  }
  if (name === "block" || name === "mutex") {
    const head = name === "block" ? ["--- contention:", CYCLES] : ["--- mutex:", CYCLES, "sampling period=0"];
    const lines = samples.map(({ values: [count = 0, delay = 0], frames }) =>
      stacks.format(`${Math.round(delay)} ${Math.round(count)}`, frames),
    );
    return [...head, ...lines, ""].join("\n");
  }
  const lines = samples.map(({ values: [count = 0], frames }) => stacks.format(String(count), frames));
  return [`${name} profile: total ${sum(0)}`, ...lines, ""].join("\n");
}

/** Functions have no addresses here: each gets the next number. */
class AddressTable {
  readonly #addresses = new Map<string, string>();

  format(values: string, frames: readonly StackFrame[]): string {
    const named = frames.map(({ functionName, file, startLine }) => {
      const text = file === "" ? functionName : `${functionName}\t${file}:${startLine}`;
      const known = this.#addresses.get(text) ?? `0x${(this.#addresses.size + 1).toString(16)}`;
      this.#addresses.set(text, known);
      return { address: known, text };
    });
    const rows = named.map(({ address, text }) => `#\t${address}\t${text}\n`);
    return `${[values, "@", ...named.map(({ address }) => address)].join(" ")}\n${rows.join("")}`;
  }
}
