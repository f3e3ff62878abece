import t from "tap";
import { eventKind } from "../../../api/core/event/kind.ts";
import { eventsV1EventKind } from "../../../api/events/event/kind.ts";
import { alice, pluginDeps, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import { eventRateLimit } from "./event-rate-limit.ts";

const configurationOf = (limits: unknown): PluginConfiguration => ({
  value: { apiVersion: "eventratelimit.admission.k8s.io/v1alpha1", kind: "Configuration", limits },
  locationOf: (path) => `f:${path}`,
  duplicates: [],
});
const event = (namespace: string, pod = "web") =>
  ({
    metadata: { name: "e", namespace },
    involvedObject: { kind: "Pod", namespace, name: pod, uid: "1", apiVersion: "v1" },
    source: { component: "agent", host: "n1" },
  }) as never;

t.test("eventRateLimit() admits a burst, then requests at the configured rate", async (t) => {
  const clock = new FakeClock();
  const configuration = configurationOf([{ type: "Server", qps: 2, burst: 3 }]);
  const plugin = eventRateLimit(pluginDeps([], { clock, configuration }));
  const send = () => rejectionOf(runPlugin(plugin, eventKind, event("a")));
  t.same([await send(), await send(), await send()], ["", "", ""]);
  t.equal(await send(), "Too many requests: limit reached on type Server for key ");
  await clock.advance(500);
  t.same([await send(), await send()], ["", "Too many requests: limit reached on type Server for key "]);
  await runPlugin(plugin, eventKind, event("a"), { dryRun: true });
  await clock.advance(3_600_000);
  t.same([await send(), await send(), await send()], ["", "", ""], "a bucket holds no more than a burst");
  t.match(await send(), /^Too many requests: limit reached/);
});

t.test("eventRateLimit() limits each namespace, user, and source with object separately", async (t) => {
  const bob = { ...alice, name: "bob" };
  const limits = ["Namespace", "User", "SourceAndObject"].map((type) => ({ type, qps: 1, burst: 1 }));
  const one = (index: number) => eventRateLimit(pluginDeps([], { configuration: configurationOf([limits[index]]) }));
  const send = (plugin: ReturnType<typeof one>, ...more: Parameters<typeof event>) =>
    rejectionOf(runPlugin(plugin, eventKind, event(...more)));
  const byNamespace = one(0);
  t.same([await send(byNamespace, "a"), await send(byNamespace, "b")], ["", ""]);
  t.equal(await send(byNamespace, "b"), "Too many requests: limit reached on type Namespace for key b");
  const byUser = one(1);
  t.equal(await send(byUser, "a"), "");
  t.equal(await rejectionOf(runPlugin(byUser, eventKind, event("a"), { user: bob })), "");
  t.equal(await send(byUser, "c"), "Too many requests: limit reached on type User for key alice");
  const bySource = one(2);
  t.same([await send(bySource, "a"), await send(bySource, "a", "db")], ["", ""]);
  t.equal(
    await send(bySource, "a"),
    "Too many requests: limit reached on type SourceAndObject for key agentn1Podaweb1v1",
  );
  const all = eventRateLimit(pluginDeps([], { configuration: configurationOf(limits.slice(0, 2)) }));
  await send(all, "a");
  t.equal(
    await send(all, "a"),
    "Too many requests: [limit reached on type Namespace for key a, limit reached on type User for key alice]",
  );
  t.match(
    await rejectionOf(runPlugin(all, eventsV1EventKind, event("a"))),
    /^Too many requests: \[limit reached/,
    "events.k8s.io/v1 Events share the limit",
  );
});

t.test("eventRateLimit() evicts the least recently used key when the cache is full", async (t) => {
  const configuration = configurationOf([{ type: "Namespace", qps: 1, burst: 1, cacheSize: 2 }]);
  const plugin = eventRateLimit(pluginDeps([], { configuration }));
  const send = (namespace: string) => rejectionOf(runPlugin(plugin, eventKind, event(namespace)));
  t.same([await send("a"), await send("b"), await send("c")], ["", "", ""]);
  t.match(await send("c"), /^Too many requests: limit reached/);
  t.equal(await send("a"), "", "its bucket was evicted");
});

t.test("eventRateLimit() rejects invalid limits", (t) => {
  const wrong = (limits: unknown) => () => eventRateLimit(pluginDeps([], { configuration: configurationOf(limits) }));
  t.throws(() => eventRateLimit(pluginDeps()), /--admission-control-config-file must name a file with its limits$/);
  t.throws(wrong([]), /f:limits: limits: Invalid value: .*must not be empty/);
  t.throws(wrong([{ type: "Pod", qps: 1, burst: 1 }]), /limits\[0\]\.type: Unsupported value: "Pod"/);
  const three =
    /limits\[0\]\.burst: Invalid value.*limits\[0\]\.qps: Invalid value.*limits\[0\]\.cacheSize: Invalid value/;
  t.throws(wrong([{ type: "User", qps: 0, burst: -1, cacheSize: -1 }]), three);
  t.throws(wrong([{ type: "User", qps: "1", burst: 1 }]), /Cannot use f:limits\[0\]\.qps: field limits\[0\]\.qps: /);
  t.throws(wrong([{ type: "User", qps: 1, burst: 1, per: "s" }]), /unknown field limits\[0\]\.per/);
  t.end();
});
