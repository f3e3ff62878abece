import t from "tap";
import { type AnyFamily, MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { testStore } from "../testing/storage/conformance.ts";
import { MeasuredStore } from "./measured-store.ts";
import { createMemoryStore } from "./memory.ts";
import { prefixRange, StoreError } from "./store.ts";

t.test("MeasuredStore is a Store", (t) =>
  testStore(
    t,
    async (clock) => new MeasuredStore(createMemoryStore({ clock }), new MetricRegistry(), clock, () => "pods"),
    { isEmbedded: true },
  ),
);

t.test("MeasuredStore records the number, duration and failures of operations", async (t) => {
  const clock = new FakeClock();
  const registry = new MetricRegistry();
  const memory = createMemoryStore({ clock });
  let broken = false;
  const flaky = Object.assign(Object.create(memory), {
    get: async () => {
      await clock.advance(70);
      if (broken) throw new StoreError("unavailable", "failed");
      return undefined;
    },
    current: memory.current.bind(memory),
    list: memory.list.bind(memory),
    create: memory.create.bind(memory),
    [Symbol.asyncDispose]: () => memory[Symbol.asyncDispose](),
  });
  await using store = new MeasuredStore(flaky, registry, clock, (key) => key.split("/")[2] ?? "");
  const value = (name: string, ...labels: readonly string[]): unknown => {
    const family = registry.all().find(({ options }) => options.name === name) as AnyFamily;
    const series = family.with(...labels);
    return "value" in series ? series.value : [series.sum, [...series.counts].indexOf(1)];
  };
  await store.create("/r/pods/a", Buffer.from("1"));
  await t.rejects(store.create("/r/pods/a", Buffer.from("2")), { code: "exists" });
  t.equal((await store.list(prefixRange("/r/pods/"))).items.length, 1);
  await store.get("/r/nodes/n");
  t.same(value("etcd_request_duration_seconds", "get", "nodes"), [0.07, 3], "above 50 ms, at most 100");
  broken = true;
  await t.rejects(store.get("/r/nodes/n"), { code: "unavailable" });
  t.equal(value("etcd_requests_total", "create", "pods"), 2);
  t.equal(value("etcd_request_errors_total", "create", "pods"), 0, "a conflict is not a failure");
  t.equal(value("etcd_requests_total", "get", "nodes"), 2);
  t.equal(value("etcd_request_errors_total", "get", "nodes"), 1);
  t.equal(value("apiserver_storage_list_total", "pods"), 1);
  t.equal(value("apiserver_storage_list_returned_objects_total", "pods"), 1);
  t.equal(store.current(), memory.current());
});

t.test("MeasuredStore records the size, the quota and the alarms of a store that has them", async (t) => {
  const clock = new FakeClock();
  const registry = new MetricRegistry();
  const alarms = [{ type: "NOSPACE" as const, message: "full" }];
  const status = () => ({ sizeBytes: 7, quotaBytes: 5, alarms, log: { bytes: 300, syncs: 2 } });
  await using store = new MeasuredStore(
    Object.assign(createMemoryStore({ clock }), { status }),
    registry,
    clock,
    () => "pods",
  );
  t.same(store.status(), status());
  await store.create("/a", Buffer.from("four"));
  const text = formatMetrics([registry], "prometheus");
  t.match(text, "etcd_mvcc_db_total_size_in_bytes 7\n");
  t.match(text, "etcd_server_quota_backend_bytes 5\n");
  t.match(text, "etcd_disk_wal_write_bytes_total 300\n");
  t.match(text, "apiserver_storage_syncs_total 2\n");
  t.match(text, 'apiserver_storage_written_bytes_total{operation="create",type="pods"} 6\n');
  t.match(text, 'etcd_server_alarms{alarm_type="NOSPACE"} 1\n');
  t.match(text, 'etcd_server_alarms{alarm_type="CORRUPT"} 0\n');
});
