/** Replays recorded streams of Kubernetes 1.33 against the agent and the API server of a cluster, with containerd. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { findMissingRequirement, programs, root } from "./cluster.ts";
import { RecordedCluster } from "./recorded-streams/cluster.ts";
import { hasRecording, type RecordedCase, readCases } from "./recorded-streams/recording.ts";
import { replayCase } from "./recorded-streams/replay.ts";

const AREAS = ["exec", "attach", "protocols", "spdy", "portforward", "run", "logs"];
/** Requests that open streams, in areas with others. The pod `hostnet` and its server are not played. */
const STREAM_CASES = /^auth-(?:attach|exec|pf|run)-|^proxy-node-(?:exec|pf|run|logs)|^proxy-pod(?!-spdy|-ws)/;
const ALL_MS_MAX = 900_000;
const CONCURRENT = 6;

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
  const cases = [...AREAS.flatMap(readCases), ...others].filter(({ id }) => filter.test(id));
  const { SVC_PROGRAM: selected = "bundle" } = process.env;
  t.test("streams are as recorded, except for known differences", { timeout: ALL_MS_MAX }, async (t) => {
    await using cluster = await RecordedCluster.start(programs[selected as keyof typeof programs]);
    const results = await replayAll(cluster, cases);
    for (const [id, problem] of results) {
      const reason = differences[id];
      if (reason === undefined) t.ok(problem === undefined, `${id}: ${problem ?? "as recorded"}`);
      else t.ok(problem !== undefined, `${id} differs: ${reason}`);
    }
    const known = new Set(cases.map(({ id }) => id));
    const stale = Object.keys(differences).filter((id) => filter.test(id) && !known.has(id));
    t.same(stale, [], "each difference names a case");
  });
}

async function replayAll(
  cluster: RecordedCluster,
  cases: readonly RecordedCase[],
): Promise<ReadonlyMap<string, string | undefined>> {
  const results = new Map<string, string | undefined>();
  const waiting = cases.entries();
  const work = async (): Promise<void> => {
    for (const [index, one] of waiting) {
      const play = (): Promise<string | undefined> =>
        replayCase(cluster, one, `p${index}`).catch((error: unknown) => String(error));
      results.set(one.id, await play());
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, work));
  return results;
}
