import t from "tap";
import type { ClusterEvent } from "../framework/cluster-event.ts";
import { InFlightEvents } from "./in-flight-events.ts";

const event = (name: string): ClusterEvent => ({
  resource: "Node",
  action: "Add",
  before: undefined,
  after: { metadata: { name } },
});
const names = (events: readonly ClusterEvent[] | undefined) => events?.map(({ after }) => after?.metadata?.name);

t.test("each pod gets the events since it was taken", async (t) => {
  const events = new InFlightEvents();
  events.record(event("before"));
  events.begin("a");
  events.record(event("1"));
  events.begin("b");
  events.record(event("2"));
  t.same(names(events.end("a")), ["1", "2"]);
  events.record(event("3"));
  t.same(names(events.end("b")), ["2", "3"]);
  t.same(events.end("b"), [], "not in flight");
});

t.test("a pod that was taken before dropped events does not get the others", async (t) => {
  const events = new InFlightEvents();
  events.begin("a");
  for (let count = 0; count < 10_000; count++) events.record(event(String(count)));
  events.begin("b");
  events.record(event("last"));
  t.equal(events.end("a"), undefined);
  t.same(names(events.end("b")), ["last"]);
});
