/**
 * Prometheus metrics in families: one name, and a series for each combination of label values. Callers on hot paths
 * keep the series that `with` returned, since `with` is a look-up.
 */

/** Kubernetes' stability level of a metric's name and labels. */
export type Stability = "ALPHA" | "BETA" | "STABLE";

export interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly stability?: Stability;
  readonly labels?: readonly string[];
  /** `1.27.0` */
  readonly deprecatedSince?: string;
  /** Kubernetes marks the texts of its timing histograms so. */
  readonly experimental?: boolean;
}

/** Which metrics are shown, as set by flags. */
export interface MetricPolicy {
  /** Names of families that are not shown. */
  readonly disabled: ReadonlySet<string>;
  /** `metric,label` → the label values allowed; all others become `unexpected`. */
  readonly allowedValues: ReadonlyMap<string, ReadonlySet<string>>;
  /** Whether deprecated metrics that are hidden by now are shown. */
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

/** A bound for each family, since some label values come from clients. */
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

  /** The series with these values, in the order of the labels; created by the first call. */
  with(...values: readonly string[]): S {
    const key = values.length === 1 ? values[0]! : values.join("\xff");
    return this.#series.get(key) ?? this.#make(key, values);
  }

  /** In the order of their label values. */
  series(): readonly S[] {
    return [...new Set(this.#series.values())].sort((a, b) => compareLists(a.values, b.values));
  }

  /** Removes all series. A series that a caller kept is not shown any more. */
  clear(): void {
    this.#series.clear();
  }

  /** Removes the series whose label values match. A series that a caller kept is not shown any more. */
  removeWhere(matches: (values: readonly string[]) => boolean): void {
    for (const [key, { values }] of this.#series) if (matches(values)) this.#series.delete(key);
  }

  /** Sets all series to zero. */
  reset(): void {
    for (const series of this.#series.values()) series.reset();
  }

  protected abstract create(values: readonly string[]): S;

  #make(key: string, labelValues: readonly string[]): S {
    if (labelValues.length !== this.labels.length) {
      throw new Error(
        `Cannot record ${this.options.name}: it has ${this.labels.length} labels, not ${labelValues.length}`,
      );
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
  /** Observations of each bucket, not cumulative; the last one is above all bounds. */
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

  /** Copies the values of a histogram with the same bounds. */
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
  readonly #included = new Set<MetricRegistry>();

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

  /** `collect` is called before metrics are shown, to set values that are computed only then. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  /** Shows the families of another registry too, until the disposal. Its names must be other ones. */
  include(other: MetricRegistry): Disposable {
    this.#included.add(other);
    return { [Symbol.dispose]: () => void this.#included.delete(other) };
  }

  has(name: string): boolean {
    return this.#families.has(name);
  }

  /** The families that the policy shows, by name. */
  collect(): readonly AnyFamily[] {
    for (const registry of [this, ...this.#included]) for (const collect of registry.#collectors) collect();
    return this.all()
      .filter((family) => this.#isShown(family.options))
      .sort((a, b) => (a.options.name < b.options.name ? -1 : 1));
  }

  /** All families, shown or not. */
  all(): readonly AnyFamily[] {
    return [this, ...this.#included].flatMap((registry) => [...registry.#families.values()]);
  }

  reset(): void {
    for (const family of this.all()) family.reset();
  }

  #isShown({ name, deprecatedSince }: MetricOptions): boolean {
    if (this.policy.disabled.has(name)) return false;
    return deprecatedSince === undefined || this.policy.showHidden || !this.policy.isHidden(deprecatedSince);
  }

  #add<F extends AnyFamily>(family: F): F {
    const { name } = family.options;
    if (this.#families.has(name)) throw new Error(`Cannot have two metrics of the name ${name}`);
    this.#families.set(name, family);
    // As in Prometheus' libraries: without labels there is one series, which is shown from the start.
    if (family.labels.length === 0) family.with();
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
