/**
 * Numbers that a process keeps about itself, in families: one name, and a series for each combination of label values.
 * Recording is adding to a number. Who records often keeps the series it was given by `with`, which is a look-up.
 */

/** How long a metric's name and labels will stay as they are. */
export type Stability = "ALPHA" | "BETA" | "STABLE";

export interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly stability?: Stability;
  readonly labels?: readonly string[];
  /** `1.27.0`: since then something else is to be used. */
  readonly deprecatedSince?: string;
}

/** What an operator wants to see of the metrics there are. */
export interface MetricPolicy {
  /** Names of families that are not shown. */
  readonly disabled: ReadonlySet<string>;
  /** `metric,label` → the values that are told apart; all others are `unexpected`. */
  readonly allowedValues: ReadonlyMap<string, ReadonlySet<string>>;
  /** Whether those that are deprecated, and hidden for it, are shown all the same. */
  readonly showHidden: boolean;
  /** Whether a metric that is deprecated since this release is hidden by now. */
  isHidden(deprecatedSince: string): boolean;
}

export const SHOW_ALL: MetricPolicy = {
  disabled: new Set(),
  allowedValues: new Map(),
  showHidden: true,
  isHidden: () => false,
};

/** Label values come from outside now and then: a family does not grow without end. */
const SERIES_MAX = 10_000;
const UNEXPECTED = "unexpected";

export type MetricType = "counter" | "gauge" | "histogram";

/** The series of one name. */
export abstract class Family<S extends Series> {
  abstract readonly type: MetricType;
  readonly options: MetricOptions;
  readonly labels: readonly string[];
  readonly #allowed: readonly (ReadonlySet<string> | undefined)[];
  readonly #series = new Map<string, S>();

  constructor(options: MetricOptions, policy: MetricPolicy) {
    this.options = options;
    this.labels = options.labels ?? [];
    this.#allowed = this.labels.map((label) => policy.allowedValues.get(`${options.name},${label}`));
  }

  /** The series with these values, in the order of the labels; made when it is first asked for. */
  with(...values: readonly string[]): S {
    const key = values.length === 1 ? values[0]! : values.join("\xff");
    return this.#series.get(key) ?? this.#make(key, values);
  }

  /** In the order of their label values. */
  series(): readonly S[] {
    return [...new Set(this.#series.values())].sort((a, b) => compareLists(a.values, b.values));
  }

  /** Forgets all series. Who keeps one records into nothing from then on. */
  clear(): void {
    this.#series.clear();
  }

  /** Sets all series to zero. */
  reset(): void {
    for (const series of this.#series.values()) series.reset();
  }

  protected abstract create(values: readonly string[]): S;

  #make(key: string, labelValues: readonly string[]): S {
    if (labelValues.length !== this.labels.length) {
      throw new Error(`Cannot record ${this.options.name}: it has ${this.labels.length} labels, not ${labelValues.length}`);
    }
    const values = labelValues.map((value, index) => (this.#allowed[index]?.has(value) === false ? UNEXPECTED : value));
    if (this.#series.size >= SERIES_MAX) return this.create(values);
    const shared = values.join("\xff");
    const series = this.#series.get(shared) ?? this.create(values);
    this.#series.set(shared, series);
    this.#series.set(key, series);
    return series;
  }
}

export interface Series {
  readonly values: readonly string[];
  reset(): void;
}

export class Counter implements Series {
  value = 0;
  readonly values: readonly string[];

  constructor(values: readonly string[]) {
    this.values = values;
  }

  inc(by = 1): void {
    this.value += by;
  }

  reset(): void {
    this.value = 0;
  }
}

export class Gauge extends Counter {
  dec(by = 1): void {
    this.value -= by;
  }

  set(value: number): void {
    this.value = value;
  }
}

export class Histogram implements Series {
  readonly values: readonly string[];
  readonly bounds: readonly number[];
  /** How many were at most each bound and above the one before; then those above all. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(values: readonly string[], bounds: readonly number[]) {
    this.values = values;
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let index = 0;
    while (index < bounds.length && value > bounds[index]!) index++;
    counts[index]!++;
    this.sum += value;
  }

  /** Shows what another one of the same bounds shows. */
  copy(other: Histogram): void {
    this.counts.set(other.counts);
    this.sum = other.sum;
  }

  reset(): void {
    this.counts.fill(0);
    this.sum = 0;
  }
}

export class CounterFamily extends Family<Counter> {
  readonly type = "counter";

  protected create(values: readonly string[]): Counter {
    return new Counter(values);
  }
}

export class GaugeFamily extends Family<Gauge> {
  readonly type = "gauge";

  protected create(values: readonly string[]): Gauge {
    return new Gauge(values);
  }
}

export class HistogramFamily extends Family<Histogram> {
  readonly type = "histogram";
  readonly bounds: readonly number[];

  constructor(options: MetricOptions, policy: MetricPolicy, bounds: readonly number[]) {
    super(options, policy);
    this.bounds = bounds;
  }

  protected create(values: readonly string[]): Histogram {
    return new Histogram(values, this.bounds);
  }
}

export type AnyFamily = CounterFamily | GaugeFamily | HistogramFamily;

export class MetricRegistry {
  readonly policy: MetricPolicy;
  readonly #families = new Map<string, AnyFamily>();
  readonly #collectors: (() => void)[] = [];

  constructor(policy: MetricPolicy = SHOW_ALL) {
    this.policy = policy;
  }

  counter(options: MetricOptions): CounterFamily {
    return this.#add(new CounterFamily(options, this.policy));
  }

  gauge(options: MetricOptions): GaugeFamily {
    return this.#add(new GaugeFamily(options, this.policy));
  }

  /** `bounds` ascend. */
  histogram(options: MetricOptions, bounds: readonly number[]): HistogramFamily {
    return this.#add(new HistogramFamily(options, this.policy, bounds));
  }

  /** Called before metrics are shown, to fill in what is only counted when somebody looks. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  has(name: string): boolean {
    return this.#families.has(name);
  }

  /** What is to be shown, by name. */
  collect(): readonly AnyFamily[] {
    for (const collect of this.#collectors) collect();
    return this.all()
      .filter((family) => this.#isShown(family.options))
      .sort((a, b) => (a.options.name < b.options.name ? -1 : 1));
  }

  /** Everything, shown or not. */
  all(): readonly AnyFamily[] {
    return [...this.#families.values()];
  }

  reset(): void {
    for (const family of this.#families.values()) family.reset();
  }

  #isShown({ name, deprecatedSince }: MetricOptions): boolean {
    if (this.policy.disabled.has(name)) return false;
    return deprecatedSince === undefined || this.policy.showHidden || !this.policy.isHidden(deprecatedSince);
  }

  #add<F extends AnyFamily>(family: F): F {
    const { name } = family.options;
    if (this.#families.has(name)) throw new Error(`Cannot have two metrics of the name ${name}`);
    this.#families.set(name, family);
    return family;
  }
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? "";
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
