import t from "tap";
import { type MetricPolicy, MetricRegistry, SHOW_ALL } from "./metrics.ts";
import { formatMetrics, formatNumber } from "./text-format.ts";

const registryWith = (policy: Partial<MetricPolicy> = {}) => new MetricRegistry({ ...SHOW_ALL, ...policy });

t.test("formatMetrics() writes each type in Prometheus' text format", async (t) => {
  const registry = registryWith();
  const requests = registry.counter({ name: "b_total", help: "Two\nlines.", stability: "STABLE", labels: ["z", "a"] });
  requests.with('say "x"', "1").inc(2);
  registry.gauge({ name: "a", help: "One." }).with().set(1.5e6);
  const seconds = registry.histogram({ name: "c", help: "Three.", labels: ["x"], deprecatedSince: "1.2" }, [0.5, 1e6]);
  for (const value of [0.5, 0.6, 2e6]) seconds.with("y").observe(value);
  registry.counter({ name: "never", help: "Never incremented." });
  registry.counter({ name: "never_by", help: "Never incremented.", labels: ["z"] });
  t.equal(
    formatMetrics([registry], "prometheus"),
    `# HELP a One.
# TYPE a gauge
a 1.5e+06
# HELP b_total [STABLE] Two\\nlines.
# TYPE b_total counter
b_total{a="1",z="say \\"x\\""} 2
# HELP c (Deprecated since 1.2) Three.
# TYPE c histogram
c_bucket{x="y",le="0.5"} 1
c_bucket{x="y",le="1e+06"} 2
c_bucket{x="y",le="+Inf"} 3
c_sum{x="y"} 2.0000011e+06
c_count{x="y"} 3
# HELP never Never incremented.
# TYPE never counter
never 0
`,
  );
});

t.test("formatMetrics() writes OpenMetrics", async (t) => {
  const registry = registryWith();
  registry.counter({ name: "a_total", help: "One." }).with().inc();
  registry.counter({ name: "attempts", help: "Two." }).with().inc();
  t.equal(
    formatMetrics([registry], "openmetrics"),
    `# HELP a One.
# TYPE a counter
a_total 1.0
# HELP attempts Two.
# TYPE attempts unknown
attempts 1.0
# EOF
`,
  );
});

t.test("formatNumber() formats numbers as Go does", async (t) => {
  const cases: readonly [number, string][] = [
    [0, "0"],
    [1, "1"],
    [0.0001, "0.0001"],
    [0.00001, "1e-05"],
    [123_456, "123456"],
    [1_234_567, "1.234567e+06"],
    [-2.5, "-2.5"],
    [Number.POSITIVE_INFINITY, "+Inf"],
    [Number.NEGATIVE_INFINITY, "-Inf"],
    [Number.NaN, "NaN"],
  ];
  for (const [value, expected] of cases) t.equal(formatNumber(value), expected);
});

t.test("MetricRegistry shows what the policy allows", async (t) => {
  const isHidden = (since: string) => since === "1.1";
  const build = (policy: Partial<MetricPolicy>) => {
    const registry = registryWith({ showHidden: false, isHidden, ...policy });
    registry.counter({ name: "new", help: "" }).with().inc();
    registry.counter({ name: "old", help: "", deprecatedSince: "1.2" }).with().inc();
    registry.counter({ name: "oldest", help: "", deprecatedSince: "1.1" }).with().inc();
    return registry.collect().map(({ options }) => options.name);
  };
  t.same(build({}), ["new", "old"]);
  t.same(build({ showHidden: true }), ["new", "old", "oldest"]);
  t.same(build({ showHidden: true, disabled: new Set(["oldest", "new"]) }), ["old"], "disabled outranks shown");
});

t.test(
  "Family.with() returns the same series again, and distinguishes unexpected values from absent ones",
  async (t) => {
    const registry = registryWith({ allowedValues: new Map([["codes,code", new Set(["200"])]]) });
    const codes = registry.counter({ name: "codes", help: "", labels: ["verb", "code"] });
    t.equal(codes.with("GET", "200"), codes.with("GET", "200"));
    t.equal(codes.with("GET", "404"), codes.with("GET", "500"));
    t.same(codes.with("GET", "404").values, ["GET", "unexpected"]);
    t.equal(codes.series().length, 2);
    t.throws(() => codes.with("GET"), /codes: it has 2 labels, not 1/);
    t.throws(() => registry.gauge({ name: "codes", help: "" }), /two metrics/);
  },
);

t.test("a family keeps a bounded number of series", async (t) => {
  const names = registryWith().counter({ name: "names", help: "", labels: ["name"] });
  for (let name = 0; name < 20_000; name++) names.with(String(name)).inc();
  t.equal(names.series().length, 10_000);
});

t.test("Family.removeWhere() removes the series with matching label values", async (t) => {
  const family = registryWith().counter({ name: "a", help: "", labels: ["verb", "group"] });
  for (const group of ["x", "y"]) family.with("GET", group).inc();
  family.removeWhere(([, group]) => group === "x");
  t.same(
    family.series().map(({ values }) => values),
    [["GET", "y"]],
  );
});

t.test("MetricRegistry.reset() sets all values to zero", async (t) => {
  const registry = registryWith();
  const kept = registry.histogram({ name: "h", help: "" }, [1]).with();
  kept.observe(3);
  registry.reset();
  t.same([kept.sum, [...kept.counts]], [0, [0, 0]]);
});
