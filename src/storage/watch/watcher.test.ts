import t from "tap";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import type { Revision } from "../store.ts";
import { Change } from "./change.ts";
import { EncodedObject } from "./encoded-object.ts";
import { WATCHER_QUEUE_MAX, Watcher, type WatchOptions } from "./watcher.ts";

const encoded = (revision: number, size: number): EncodedObject<Widget> =>
  new EncodedObject(widgetKind, "/w/a", makeWidget("a", { size }), revision as Revision);

/** A change at `revision` of an object whose size is the revision. */
function change(revision: number): Change<Widget> {
  return new Change(revision as Revision, encoded(revision - 1, revision - 1), encoded(revision, revision), 100);
}

function setUp(options: Partial<WatchOptions<Widget>> = {}) {
  const controller = new AbortController();
  const closed: Watcher<Widget>[] = [];
  const watcher = new Watcher<Widget>(
    { prefix: "/w/", signal: controller.signal, ...options },
    options.matches,
    0 as Revision,
    [],
    (ended) => closed.push(ended),
  );
  return { watcher, controller, closed };
}

t.test("Watcher delivers events to a waiting reader at once, else queues them in order", async (t) => {
  const { watcher } = setUp();
  const first = watcher.next();
  const second = watcher.next();
  for (const revision of [2, 3, 4]) watcher.offer(change(revision));
  t.match(
    [await first, await second, await watcher.next()],
    [2, 3, 4].map((revision) => ({ value: { revision } })),
  );
});

t.test("Watcher delivers replayed changes before queued ones", async (t) => {
  const { watcher } = setUp();
  watcher.offer(change(4));
  watcher.replay([change(2), change(3)]);
  const revisions = [await watcher.next(), await watcher.next(), await watcher.next()].map(
    ({ value }) => value.revision,
  );
  t.same(revisions, [2, 3, 4]);
});

t.test("Watcher with a full queue ends with a 410 that says why", async (t) => {
  const { watcher, closed } = setUp();
  watcher.offer(change(1));
  t.equal((await watcher.next()).value.revision, 1);
  for (let i = 0; i < WATCHER_QUEUE_MAX; i++) watcher.offer(change(i + 2));
  t.equal(closed.length, 0);
  watcher.bookmark(5000 as Revision);
  t.equal(watcher.queuedBytes, 0, "these have no stored bytes");
  watcher.offer(change(WATCHER_QUEUE_MAX + 2));
  watcher.offer(change(WATCHER_QUEUE_MAX + 3));
  t.equal(closed.length, 1);
  const message = /^The watch fell too far behind: 1024 changes of 0 bytes waited for its client; list again$/;
  await t.rejects(watcher.next(), { name: "StatusError", message }, "its queue is dropped at once");
  t.same(await watcher.next(), { done: true, value: undefined });
});

t.test("Watcher with a full queue ends with 410 before all initial events are read", async (t) => {
  const { watcher, closed } = setUp();
  watcher.replay([change(1), change(2)]);
  await watcher.next();
  for (let i = 0; i <= WATCHER_QUEUE_MAX; i++) watcher.offer(change(i + 3));
  t.equal(closed.length, 1);
  await t.rejects(watcher.next(), { name: "StatusError", message: /^The watch fell too far behind/ });
  t.same(await watcher.next(), { done: true, value: undefined });
});

t.test("Watcher replaces a queued bookmark", async (t) => {
  const { watcher } = setUp();
  watcher.offer(change(2));
  watcher.bookmark(3 as Revision);
  watcher.bookmark(9 as Revision);
  t.match(
    [await watcher.next(), await watcher.next()],
    [{ value: { type: "MODIFIED" } }, { value: { type: "BOOKMARK", revision: 9, initialEventsEnd: false } }],
  );
  const waiting = watcher.next();
  watcher.bookmark(10 as Revision);
  t.match(await waiting, { value: { type: "BOOKMARK", revision: 10 } });
});

t.test("Watcher.return(), an abort and fail() end the watch once and resolve its readers", async (t) => {
  const returned = setUp();
  const waiting = [returned.watcher.next(), returned.watcher.next()];
  await returned.watcher.return();
  returned.watcher.offer(change(2));
  t.same(await Promise.all([...waiting, returned.watcher.next()]), Array(3).fill({ done: true, value: undefined }));
  t.equal(returned.closed.length, 1);

  const aborted = setUp();
  aborted.watcher.offer(change(2));
  aborted.controller.abort();
  t.same(await aborted.watcher.next(), { done: true, value: undefined }, "what is queued is dropped");
  t.equal(aborted.closed.length, 1);

  const failed = setUp();
  const [first, second] = [failed.watcher.next(), failed.watcher.next()];
  failed.watcher.fail(new Error("failed"));
  failed.watcher.fail(new Error("again"));
  await t.rejects(first, { message: "failed" });
  t.same(await second, { done: true, value: undefined });
  t.equal(failed.closed.length, 1);
});

t.test("Watcher delivers only changes that match its selector and prefix", async (t) => {
  const { watcher } = setUp({ matches: ({ object }) => (object.size ?? 0) % 4 < 2 });
  for (const revision of [4, 5, 6, 7, 8]) watcher.offer(change(revision));
  t.match(
    [await watcher.next(), await watcher.next(), await watcher.next(), await watcher.next()],
    [
      { value: { type: "ADDED", revision: 4 } },
      { value: { type: "MODIFIED", revision: 5 } },
      { value: { type: "DELETED", revision: 6, item: { object: { size: 5, metadata: { resourceVersion: "6" } } } } },
      { value: { type: "ADDED", revision: 8 } },
    ],
  );
  const elsewhere = setUp({ prefix: "/x/" });
  elsewhere.watcher.offer(change(2));
  await elsewhere.watcher.return();
  t.same(await elsewhere.watcher.next(), { done: true, value: undefined });
});
