import t from "tap";
import { Histogram } from "../../std/metrics/metrics.ts";
import { DemandIntegrator } from "./demand-integrator.ts";
import { TimingRatio } from "./timing-ratio.ts";

t.test("DemandIntegrator weights values by their time", async (t) => {
  const demand = new DemandIntegrator(1000);
  demand.set(4, 2000);
  demand.set(0, 4000);
  t.same(demand.reset(5000), { durationMs: 4000, average: 2, deviation: 2, max: 4 });
  demand.set(3, 5000);
  t.match(demand.reset(6000), { average: 3, deviation: 0, max: 3 });
  t.match(demand.reset(7000), { average: 3, max: 3 }, "the value is kept");
});

t.test("TimingRatio observes each nanosecond", async (t) => {
  const histogram = new Histogram([], [0, 0.5, 1]);
  const ratio = new TimingRatio(histogram, 0);
  ratio.setDenominator(4, 0);
  ratio.add(2, 1);
  ratio.add(2, 3);
  ratio.setDenominator(2, 4);
  ratio.observe(5);
  t.same([...histogram.counts], [1e6, 2e6, 1e6, 1e6]);
  t.equal(histogram.sum, 0.5 * 2e6 + 1e6 + 2 * 1e6);
  ratio.observe(4);
  t.equal(histogram.counts[3], 1e6, "time does not go back");
});
