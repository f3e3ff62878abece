import t from "tap";
import { makeRequest } from "../http/request.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { EventLoopContention } from "./contention.ts";
import { createDebugPages } from "./debug-pages.ts";

t.test("createDebugPages() serves delays of the event loop only when they are measured", async (t) => {
  const clock = new FakeClock();
  const create = (contention: EventLoopContention | undefined) =>
    createDebugPages({ clock, contention, setVerbosity: () => undefined });
  const paths = (contention: EventLoopContention | undefined) => create(contention).map(({ path }) => path);
  t.notOk(paths(undefined).includes("/debug/pprof/block"));
  using contention = new EventLoopContention(clock);
  t.ok(paths(contention).includes("/debug/pprof/block"));
  const index = create(undefined).find(({ path }) => path === "/debug/pprof");
  const response = await index?.respond(makeRequest({ path: "/debug/pprof" }));
  t.match(String(response?.body), /profile\?seconds=30/);
});
