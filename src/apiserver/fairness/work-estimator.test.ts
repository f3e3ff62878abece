import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { FlowControlMetrics } from "./flow-control-metrics.ts";
import { WatchTracker } from "./watch-tracker.ts";
import { maxSeatsOf, totalWorkOf } from "./work-estimate.ts";
import { WorkEstimator } from "./work-estimator.ts";

const info = (line: string) => {
  const [method = "", target = ""] = line.split(" ");
  const [path = "", query = ""] = target.split("?");
  return parseRequestInfo({ method, path, query });
};
const flow = new FlowControlMetrics(new MetricRegistry(), new FakeClock()).ofFlow("schema", "level");

const PODS = "GET /api/v1/pods";

t.test("WorkEstimator takes a seat for each hundred objects that a list looks at", async (t) => {
  const seats = (target: string, stored: number | undefined, levelMax = 0, watchList = false): number => {
    const estimator = new WorkEstimator({ watches: new WatchTracker(), countObjects: () => stored, watchList });
    return estimator.estimate(info(target), flow, levelMax).initialSeats;
  };
  t.equal(seats(PODS, 0), 1);
  t.equal(seats(PODS, 100), 1);
  t.equal(seats(PODS, 101), 2);
  t.equal(seats(PODS, 5000), 10, "at most ten");
  t.equal(seats(PODS, 5000, 3), 3, "at most what a request of the level may take");
  t.equal(seats(PODS, undefined), 1, "a resource of another server");
  t.equal(seats(PODS, -1), 10, "counting fails");
  t.equal(seats(`${PODS}?limit=50`, 400), 4, "the cache has no pages");
  t.equal(seats(`${PODS}?limit=50&resourceVersion=7`, 400), 1, "from the store twice the page");
  t.equal(seats(`${PODS}?limit=150&resourceVersion=7`, 400), 3);
  t.equal(seats(`${PODS}?limit=150&resourceVersion=0`, 400), 4);
  t.equal(seats(`${PODS}?limit=150&continue=x`, 400), 3);
  t.equal(seats(`${PODS}?limit=150&continue=x&labelSelector=a`, 400), 6, "a selector looks at all objects");
  t.equal(seats(`${PODS}?resourceVersion=7&resourceVersionMatch=Exact`, 400), 8);
  t.equal(seats(`${PODS}?resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=9`, 400), 4);
  t.equal(seats(`${PODS}?fieldSelector=metadata.name%3Dweb`, 400), 1, "one object");
  t.equal(seats(`${PODS}?limit=much`, 400), 10, "an invalid query");
  t.equal(seats("GET /api/v1/namespaces/a/pods/web", 5000), 1);
  t.equal(seats("GET /version", 5000), 1);
  t.equal(seats(`${PODS}?watch=1&sendInitialEvents=true`, 400), 1);
  t.equal(seats(`${PODS}?watch=1&sendInitialEvents=true`, 400, 0, true), 4, "with the gate WatchList");
  t.equal(seats(`${PODS}?watch=1&resourceVersion=0`, 400, 0, true), 1);
});

t.test("WorkEstimator adds seats for the events of a write when ten watches receive them", async (t) => {
  const watches = new WatchTracker();
  const estimator = new WorkEstimator({ watches, countObjects: () => 1, watchList: false });
  const add = (count: number): void => {
    for (let index = 0; index < count; index++) watches.add(info(`${PODS}?watch=1`));
  };
  const estimate = (line: string, levelMax = 0) => estimator.estimate(info(line), flow, levelMax);
  const POST = "POST /api/v1/namespaces/a/pods";
  add(9);
  t.same(estimate(POST), { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 });
  add(2);
  t.same(estimate(POST), { initialSeats: 1, finalSeats: 2, additionalLatencyMs: 5 });
  t.same(estimate("DELETE /api/v1/namespaces/a/pods/web"), { initialSeats: 1, finalSeats: 2, additionalLatencyMs: 5 });
  add(189);
  const wide = estimate(POST);
  t.same(wide, { initialSeats: 1, finalSeats: 10, additionalLatencyMs: 10 }, "fewer seats for longer");
  t.equal(maxSeatsOf(wide), 10);
  t.equal(totalWorkOf(wide), 0.103);
  t.same(estimate(POST, 4), { initialSeats: 1, finalSeats: 4, additionalLatencyMs: 25 });
  for (let index = 0; index < 99; index++) watches.add(info("GET /api/v1/serviceaccounts?watch=1"));
  t.equal(estimate("POST /api/v1/namespaces/a/serviceaccounts/x/token").finalSeats, 0, "a token is no event");
});
