import t from "tap";
import { parseRequestInfo } from "../request/request-info.ts";
import { WatchTracker } from "./watch-tracker.ts";

const info = (line: string) => {
  const [method = "", target = ""] = line.split(" ");
  const [path = "", query = ""] = target.split("?");
  return parseRequestInfo({ method, path, query });
};

t.test("WatchTracker counts the watches that receive the event of a write", async (t) => {
  const tracker = new WatchTracker();
  const write = info("PUT /api/v1/namespaces/a/pods/web");
  t.equal(tracker.countFor(write), 0);
  const forgets = [
    "GET /api/v1/pods?watch=1",
    "GET /api/v1/namespaces/a/pods?watch=1",
    "GET /api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Dweb",
    "GET /api/v1/namespaces/b/pods?watch=1",
    "GET /api/v1/configmaps?watch=1",
  ].map((line) => tracker.add(info(line)));
  t.equal(tracker.countFor(write), 3);
  t.equal(tracker.countFor(info("POST /api/v1/namespaces/a/pods")), 2);
  t.equal(tracker.countFor(info("PUT /api/v1/namespaces/c/pods/web")), 1);
  forgets[0]?.();
  forgets[0]?.();
  t.equal(tracker.countFor(write), 2, "a watch is removed once");
  for (const forget of forgets) forget();
  t.equal(tracker.countFor(write), 0);
});

t.test("WatchTracker counts both names of a group together", async (t) => {
  const tracker = new WatchTracker();
  tracker.add(info("GET /apis/networking.svc.io/v1/ingresses?watch=1"));
  t.equal(tracker.countFor(info("DELETE /apis/networking.k8s.io/v1/namespaces/a/ingresses/x")), 1);
});
