import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { serviceKind } from "../../api/core/service/kind.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeInformers } from "../../testing/client/fake-informers.ts";
import { makeExternalName, makeService, makeSlice } from "../../testing/dns/queries.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { RecordSource } from "./record-source.ts";

const service = makeService("default/web", "None", "http/TCP/80");
const slice = makeSlice("default/web", "web-1", "http/TCP/8080", "web-0=10.1.0.1", "10.1.0.2");

function start(file: string) {
  const informers = new FakeInformers();
  const clock = new FakeClock();
  return { informers, clock, open: () => RecordSource.open({ informers, file, clock, log: silentLogger }) };
}

t.test(
  "RecordSource has records when the informers have listed everything, and those of the last run before",
  async (t) => {
    const file = join(t.testdir(), "records");
    const first = start(file);
    const source = await first.open();
    first.informers.put(serviceKind, service, makeExternalName("default/ext", "www.example.com"));
    first.informers.put(endpointSliceKind, slice);
    t.equal(source.records, undefined);
    first.informers.sync();
    await until("the records", () => source.records !== undefined || undefined);
    const show = ({ records }: RecordSource) =>
      [...(records?.entries() ?? [])].map((each) => JSON.stringify({ ...each, slices: [...each.slices] }));
    const entries = show(source);
    t.equal(entries.length, 2);
    await source[Symbol.asyncDispose]();
    t.equal(statSync(file).mode & 0o777, 0o600);
    t.equal(first.clock.pending, 0);

    const second = start(file);
    const restarted = await second.open();
    t.same(show(restarted), entries, "before the informers have listed anything");
    t.equal([...restarted.records!.findByAddress("10.1.0.2")].length, 1);
    second.informers.put(serviceKind, makeService("default/other", "10.3.0.1"));
    second.informers.sync();
    await until("new records", () => restarted.records?.find("default", "web") === undefined || undefined);
    t.ok(restarted.records?.find("default", "other"));
    await restarted[Symbol.asyncDispose]();
  },
);

t.test("RecordSource writes changes after seconds, and large records at most once in five minutes", async (t) => {
  const file = join(t.testdir(), "records");
  const { informers, clock, open } = start(file);
  const source = await open();
  informers.sync();
  await until("the records", () => source.records);
  const written = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 2 : -1);
  informers.put(serviceKind, service);
  await clock.advance(5000);
  await until("the file", () => written() === 1 || undefined);
  informers.delete(serviceKind, service);
  informers.put(serviceKind, makeService("default/a", "10.3.0.1"), makeService("default/b", "10.3.0.2"));
  await clock.advance(4000);
  t.equal(written(), 1);
  await clock.advance(1000);
  await until("the file", () => written() === 2 || undefined);

  const many = Array.from({ length: 40_000 }, (_, index) =>
    makeService(`default/${"x".repeat(50)}-${index}`, `10.4.${index >> 8}.${index & 255}`),
  );
  informers.put(serviceKind, ...many);
  await clock.advance(5000);
  await until("the large file", () => written() === many.length + 2 || undefined);
  t.ok(statSync(file).size > 3_000_000, "more than five minutes at 10 kB a second");
  await clock.advance(0);
  for (const each of many) informers.delete(serviceKind, each);
  await clock.advance(299_000);
  t.equal(written(), many.length + 2);
  await clock.advance(1000);
  await until("the file", () => written() === 2 || undefined);
  informers.delete(serviceKind, makeService("default/a", "10.3.0.1"));
  await source[Symbol.asyncDispose]();
  t.equal(written(), 1, "at the end");
});

t.test("RecordSource repeats a failed write after growing delays, without another change", async (t) => {
  const directory = join(t.testdir(), "absent");
  const file = join(directory, "records");
  const informers = new FakeInformers();
  const clock = new FakeClock();
  const failures: number[] = [];
  const log = { ...silentLogger, warn: () => void failures.push(clock.monotonic()) };
  const source = await RecordSource.open({ informers, file, clock, log });
  informers.put(serviceKind, service);
  informers.sync();
  await until("the records", () => source.records);
  const began = clock.monotonic();
  for (const seconds of [5, 5, 10, 20, 40, 80, 160, 300, 300]) {
    const before = failures.length;
    await clock.advance(seconds * 1000 - 1);
    t.equal(failures.length, before, `not before ${seconds} s`);
    await clock.advance(1);
    await until("the failed write", () => failures.length === before + 1 || undefined);
    await until("the timer of the next", () => clock.pending === 1 || undefined);
  }
  t.equal(failures.at(-1)! - began, 920_000);
  mkdirSync(directory);
  await clock.advance(300_000);
  await until("the file", () => existsSync(file) || undefined);
  t.equal(failures.length, 9);
  await until("the end of the write", () => clock.pending === 0 || undefined);

  rmSync(directory, { recursive: true });
  informers.put(serviceKind, makeService("default/other", "10.3.0.1"));
  await clock.advance(5000);
  await until("the failed write", () => failures.length === 10 || undefined);
  await source[Symbol.asyncDispose]();
  t.equal(failures.length, 11, "the last attempt");
  t.equal(clock.pending, 0);
});

t.test("RecordSource starts without records when the file is damaged", async (t) => {
  const file = join(t.testdir(), "records");
  for (const text of ["", "another format\n", 'svc DNS records 1\n["default"', "svc DNS records 1\n[1]\n"]) {
    writeFileSync(file, text);
    const source = await start(file).open();
    t.equal(source.records, undefined, JSON.stringify(text));
    await source[Symbol.asyncDispose]();
  }
});
