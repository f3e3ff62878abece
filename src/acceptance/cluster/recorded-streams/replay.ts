/** Plays a recorded case against a cluster. */
import { compareReceived, compareResponse, Expectation } from "./compare.ts";
import { StreamConnection } from "./connection.ts";
import type { RecordedCase, ReplayTarget } from "./recording.ts";

const ANSWER_MS_MAX = 20_000;
const ENTRY_MS_MAX = 15_000;
/** Of the waits that show that a connection stays open. */
const OPEN_MS_MAX = 1000;
const END_MS_MAX = 6000;
const ENDED_EARLY = "the connection ended before";
/**
 * Of a case whose connection ended although the recorded one stayed open. The runtime's SPDY server leaves a connection
 * open when a stream that was not requested arrives after it counted the others, and closes it otherwise.
 */
const ENDED_EARLY_ATTEMPTS = 5;

const CONCURRENT = 6;

/** By id, the first difference from the recording. */
export async function replayAll(
  cluster: ReplayTarget,
  cases: readonly RecordedCase[],
): Promise<ReadonlyMap<string, string | undefined>> {
  const results = new Map<string, string | undefined>();
  const waiting = cases.entries();
  const work = async (): Promise<void> => {
    for (const [index, one] of waiting) {
      const play = (): Promise<string | undefined> =>
        replayCase(cluster, one, `p${index}`).catch((error: unknown) => String(error));
      let problem = await play();
      for (let attempt = 2; problem?.startsWith(ENDED_EARLY) && attempt <= ENDED_EARLY_ATTEMPTS; attempt++) {
        problem = await play();
      }
      results.set(one.id, problem);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, work));
  return results;
}

/** The first difference from the recording; undefined without one. */
async function replayCase(cluster: ReplayTarget, one: RecordedCase, pod: string): Promise<string | undefined> {
  if (one.pod !== undefined) await cluster.createPod(one.pod, pod);
  try {
    using connection = new StreamConnection(one, cluster.address(one), cluster.path(one, pod), cluster.identity(one));
    if (!(await connection.waitFor(() => connection.isComplete(), ANSWER_MS_MAX))) return "no answer";
    const response = await connection.response;
    const replace = (text: string): string => cluster.replace(text).replaceAll("<pod>", pod);
    const problem = compareResponse(one, response, replace);
    if (problem !== undefined || response.status !== 101) return problem;
    return (await playTranscript(cluster, connection, one, pod)) ?? compareReceived(one, connection.received, replace);
  } finally {
    if (one.pod !== undefined) await cluster.deletePod(pod).catch(() => {});
  }
}

async function playTranscript(
  cluster: ReplayTarget,
  connection: StreamConnection,
  one: RecordedCase,
  pod: string,
): Promise<string | undefined> {
  const { received } = connection;
  const expected = new Expectation();
  const entries = one.transcript ?? [];
  for (const [index, entry] of entries.entries()) {
    if (entry.from === "server") {
      expected.add(entry);
      continue;
    }
    // As the recorder, which sends the last message of some cases after the server has closed.
    if (!(await connection.waitFor(() => expected.isMet(received), ENTRY_MS_MAX))) return missing(connection, index);
    if (entry.from === "client") await connection.play(entry);
    else if (entry.note?.startsWith("pod deleted")) await cluster.deletePod(pod);
    else if (entry.note?.startsWith("still open") && (await connection.waitFor(() => received.ended, OPEN_MS_MAX))) {
      return `${ENDED_EARLY}: ${entry.note}`;
    }
  }
  if (!(await connection.waitFor(() => expected.isMet(received), ENTRY_MS_MAX))) {
    return missing(connection, entries.length);
  }
  const ends = one.end === "server closed the connection";
  if (ends && !(await connection.waitFor(() => received.ended, END_MS_MAX))) return "the server does not close";
  return one.end === "connection still open" && received.ended ? "the server has closed" : undefined;
}

function missing({ received }: StreamConnection, index: number): string {
  const data = Object.fromEntries([...received.data].map(([name, bytes]) => [name, bytes.toString().slice(0, 300)]));
  const { replies, fins, resets, closes, ended } = received;
  const shown = { data, replies: [...replies], fins: [...fins], resets: [...resets], closes, ended };
  return `before entry ${index} only ${JSON.stringify(shown)}`;
}
