/** A set of CPU numbers, written as the kernel writes it: `0-3,8`. Immutable. */
export class CpuSet implements Iterable<number> {
  static readonly empty = new CpuSet(new Set());
  /** In ascending order. */
  readonly #cpus: ReadonlySet<number>;

  private constructor(cpus: ReadonlySet<number>) {
    this.#cpus = cpus;
  }

  static of(...cpus: readonly number[]): CpuSet {
    return CpuSet.from(cpus);
  }

  static from(cpus: Iterable<number>): CpuSet {
    const sorted = [...new Set(cpus)].sort((a, b) => a - b);
    return sorted.length === 0 ? CpuSet.empty : new CpuSet(new Set(sorted));
  }

  /** Throws for text that is no set of CPUs, with Go's message of the first wrong number. */
  static parse(text: string): CpuSet {
    if (text === "") return CpuSet.empty;
    return CpuSet.from(text.trim().split(",").flatMap(parseRange));
  }

  get size(): number {
    return this.#cpus.size;
  }

  get isEmpty(): boolean {
    return this.#cpus.size === 0;
  }

  has(cpu: number): boolean {
    return this.#cpus.has(cpu);
  }

  equals(other: CpuSet): boolean {
    return this.size === other.size && this.isSubsetOf(other);
  }

  isSubsetOf(other: CpuSet): boolean {
    return [...this.#cpus].every((cpu) => other.has(cpu));
  }

  union(...others: readonly CpuSet[]): CpuSet {
    return others.length === 0 ? this : CpuSet.from([this, ...others].flatMap((each) => [...each]));
  }

  intersection(other: CpuSet): CpuSet {
    return this.filter((cpu) => other.has(cpu));
  }

  difference(other: CpuSet): CpuSet {
    return this.filter((cpu) => !other.has(cpu));
  }

  filter(keep: (cpu: number) => boolean): CpuSet {
    return CpuSet.from([...this.#cpus].filter(keep));
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#cpus.values();
  }

  toString(): string {
    const ranges: [number, number][] = [];
    for (const cpu of this.#cpus) {
      const last = ranges.at(-1);
      if (last !== undefined && cpu === last[1] + 1) last[1] = cpu;
      else ranges.push([cpu, cpu]);
    }
    return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
  }
}

/** More CPUs than any machine has: a wrong range must not exhaust the memory. */
const CPUS_MAX = 65_536;

function parseRange(text: string): readonly number[] {
  const [first = "", last] = text.split("-", 2);
  const start = parseNumber(first);
  if (last === undefined) return [start];
  const end = parseNumber(last);
  if (start > end) throw new Error(`invalid range ${JSON.stringify(text)} (${start} > ${end})`);
  return Array.from({ length: end - start + 1 }, (_, index) => start + index);
}

function parseNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
  const number = Number(text);
  if (number >= CPUS_MAX) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(text)}: value out of range`);
  return number;
}
