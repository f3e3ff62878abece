/** Replays recorded streams of Kubernetes 1.33 against the agent and the API server of a cluster, with containerd. */
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import t, { type Test } from "tap";
import {
  compareResponse,
  type Exchange,
  nameExchanges,
  readRecording,
  receive,
} from "../recorded-answers/agent-http.ts";
import { findMissingRequirement, programs, root } from "./cluster.ts";
import { RecordedCluster } from "./recorded-streams/cluster.ts";
import { hasRecording, type RecordedCase, readCases } from "./recorded-streams/recording.ts";
import { replayAll } from "./recorded-streams/replay.ts";

const AREAS = ["exec", "attach", "protocols", "spdy", "portforward", "run", "logs"];
/** Requests that open streams, in areas with others. The pod `hostnet` and its server are not played. */
const STREAM_CASES = /^auth-|^proxy-node-(?:exec|pf|run|logs)|^proxy-pod(?!-spdy|-ws)/;
/** Recorded with the gate PodLogsQuerySplitStreams. */
const GATED = /^gate-/;
const ALL_MS_MAX = 900_000;
const STREAM_GATES = "SvcletFineGrainedAuthz=true";

/** Cases that differ, by reason. The list only shrinks. */
const reasons = JSON.parse(readFileSync(join(root, "testdata/recorded-differences/streams.json"), "utf8")) as Readonly<
  Record<string, readonly string[]>
>;
const differences: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(reasons).flatMap(([reason, ids]) => ids.map((id) => [id, reason])),
);

t.setTimeout(ALL_MS_MAX);
const missing = hasRecording() ? findMissingRequirement() : "the recordings are not present";
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  const filter = new RegExp(process.env.SVC_STREAMS ?? "");
  const others = ["auth", "proxy"].flatMap(readCases).filter(({ id }) => STREAM_CASES.test(id));
  const all = [...AREAS.flatMap(readCases), ...others].filter(({ id }) => filter.test(id));
  const [gated, plain] = [all.filter(({ id }) => GATED.test(id)), all.filter(({ id }) => !GATED.test(id))];
  t.test("streams are as recorded, except for known differences", { timeout: ALL_MS_MAX }, async (t) => {
    await testCases(t, plain, STREAM_GATES);
  });
  t.test("logs of one stream are as recorded", { timeout: ALL_MS_MAX }, async (t) => {
    await testCases(t, gated, "PodLogsQuerySplitStreams=true");
  });
  t.test("each difference names a case", async (t) => {
    const known = new Set(all.map(({ id }) => id));
    t.same(
      Object.keys(differences).filter((id) => filter.test(id) && !known.has(id)),
      [],
    );
  });
}

async function testCases(t: Test, cases: readonly RecordedCase[], gates: string): Promise<void> {
  if (cases.length === 0) return;
  const { SVC_PROGRAM: selected = "bundle" } = process.env;
  await using cluster = await RecordedCluster.start(programs[selected as keyof typeof programs], gates);
  if (gates === STREAM_GATES) await testRuntimeAnswers(t, cluster);
  for (const [id, problem] of await replayAll(cluster, cases)) {
    const reason = differences[id];
    if (reason === undefined) t.ok(problem === undefined, `${id}: ${problem ?? "as recorded"}`);
    else t.ok(problem !== undefined, `${id} differs: ${reason}`);
  }
}

/** Requests to the agent that the runtime answers, which the comparison without a runtime leaves out. */
async function testRuntimeAnswers(t: Test, cluster: RecordedCluster): Promise<void> {
  const listed = JSON.parse(
    readFileSync(join(root, "testdata/recorded-differences/agent-http.json"), "utf8"),
  ) as object;
  const names = Object.entries(listed).flatMap(([reason, each]) =>
    reason.startsWith("the answer is the runtime's") ? (each as readonly string[]) : [],
  );
  const exchanges = nameExchanges((readRecording()?.exchanges ?? []).filter(({ error }) => error === undefined));
  for (const name of names) {
    const exchange = withoutFrames(exchanges.get(name));
    const problem = exchange === undefined ? "not recorded" : compareResponse(exchange, await send(cluster, exchange));
    t.ok(problem === undefined, `${name}${problem === undefined ? "" : `: ${problem}`}`);
  }
}

/** What follows the headers of an upgrade is compared by the cases. */
function withoutFrames(exchange: Exchange | undefined): Exchange | undefined {
  return exchange?.code === 101 ? { ...exchange, body: undefined } : exchange;
}

function send(cluster: RecordedCluster, { method = "GET", path: recorded, requestHeaders = {} }: Exchange) {
  const path = cluster.replacePath(recorded.replace("<namespace>", "$NS").replace("<uid>", "$UID"));
  const options = { ...cluster.agent, ...cluster.admin, method, path, headers: requestHeaders };
  return receive(request({ ...options, agent: false, rejectUnauthorized: false }));
}
