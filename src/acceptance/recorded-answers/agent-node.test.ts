/**
 * Compares the agent's Node object, its lease and its events with those recorded of kubelet 1.33, from registration to
 * a time without the container runtime (`shared/oracles/recorded-agent/node.json`).
 * `testdata/recorded-differences/agent-node.json` lists what differs by reason.
 *
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/agent-node.test.ts     removes what agrees now
 */
import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { RuntimeError } from "../../agent/runtime/runtime.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { createTestAgent } from "../../testing/agent/flag-harness.ts";
import { shared } from "./agent-http.ts";
import { RecordedDifferences } from "./recorded-differences.ts";

interface RecordedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly component: string;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface Recording {
  readonly nodeUpdates: readonly { readonly changed?: Readonly<Record<string, string | null>> }[];
  readonly lease: unknown;
  readonly events: readonly RecordedEvent[];
  readonly firstObject: unknown;
  readonly lastObject: unknown;
}

const file = `${shared}/oracles/recorded-agent/node.json`;

/** Texts of the leaves by path; list elements by their type, key or name. */
function flatten(value: unknown, path = "", leaves = new Map<string, string>()): ReadonlyMap<string, string> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const { type, key, name } = isPlainObject(item) ? item : {};
      flatten(item, `${path}[${String(type ?? key ?? name ?? index)}]`, leaves);
    }
  } else if (isPlainObject(value)) {
    for (const [key, item] of Object.entries(value)) flatten(item, `${path}/${key}`, leaves);
  } else leaves.set(path, String(value));
  return leaves;
}

/** What the machine, the cluster and the run determine: times, ids, sizes, versions. */
const VARYING = /^<.*>$|^\d+(?:Ki)?$|^v1\.33\.|^\d{4}-\d\d-\d\dT|^fake:\/\/|^containerd:\/\//;
/** Written by controllers of the recorded cluster, or different on each machine. */
const IGNORED =
  /^\/(?:apiVersion|kind$|metadata\/(?:resourceVersion|annotations\/node\.alpha)|status\/images|spec\/taints|spec$)/;

/** Differences of `found` from `recorded`, by path. */
function compareObjects(recorded: unknown, found: unknown): ReadonlyMap<string, string> {
  const differences = new Map<string, string>();
  const expected = flatten(recorded);
  const actual = flatten(found);
  for (const path of new Set([...expected.keys(), ...actual.keys()])) {
    if (IGNORED.test(path)) continue;
    const [want, is] = [expected.get(path), actual.get(path)];
    if (want === is || (want !== undefined && is !== undefined && VARYING.test(want))) continue;
    differences.set(path, is === undefined ? `lacks ${want}` : `${is} instead of ${want}`);
  }
  return differences;
}

t.test("the agent's Node, lease and events are those of kubelet 1.33", async (t) => {
  if (!existsSync(file)) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const recording = JSON.parse(readFileSync(file, "utf8")) as Recording;
  await using agent = await createTestAgent("flag", {});
  await agent.start();
  const named = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll('"n1"', '"<node>"'));
  const ready = (): Partial<Condition> => {
    const { conditions = [] } = (agent.getNode().status ?? {}) as { conditions?: readonly Condition[] };
    return conditions.find(({ type }) => type === "Ready") ?? {};
  };
  await agent.until("the node is ready", () => ready().status === "True");
  const differences = new RecordedDifferences("agent-node");
  const add = (what: string, found: ReadonlyMap<string, string>): void => {
    for (const [path, text] of found) differences.add(`${what} ${path}`, text);
  };
  add("node", compareObjects(recording.lastObject, named(agent.getNode())));
  const lease = "/apis/coordination.svc.io/v1/namespaces/kube-node-lease/leases/n1";
  await agent.until("the lease", () => agent.api.objects.has(lease));
  add("lease", compareObjects(recording.lease, named(agent.api.objects.get(lease))));

  const down = new RuntimeError("UNAVAILABLE", "connection refused");
  for (const method of ["status", "version", "listPodSandbox", "listContainers"]) agent.fake.fail(method, down, 10_000);
  await agent.until("the node is not ready", () => ready().status === "False");
  const change = recording.nodeUpdates.find(
    ({ changed }) => changed?.["/status/conditions[Ready]/status"] === '"False"',
  );
  for (const field of ["reason", "message"] as const) {
    const want = JSON.parse(change?.changed?.[`/status/conditions[Ready]/${field}`] ?? "null") as unknown;
    const is = ready()[field];
    differences.add(`without runtime ${field}`, is === want ? undefined : `${is} instead of ${want}`);
  }
  const events = [...agent.api.objects].flatMap(([path, object]) => {
    if (!path.includes("/events/")) return [];
    const {
      type,
      reason,
      message = "",
      source,
    } = object as Partial<RecordedEvent> & { source?: { component?: string } };
    return [{ type, reason, message: message.replaceAll("n1", "<node>"), component: source?.component ?? "" }];
  });
  for (const { type, reason, message } of recording.events) {
    const same = events.find((each) => each.reason === reason);
    const text = same === undefined ? "missing" : `${same.type} ${same.message} instead of ${type} ${message}`;
    differences.add(`event ${reason}`, same?.type === type && same.message === message ? undefined : text);
  }
  t.same(differences.unlisted(), []);
  t.same(differences.resolved(), [], "all that is listed differs (SVC_RECORD=1 removes the rest)");
});
