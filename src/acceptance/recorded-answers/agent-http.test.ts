/**
 * Compares the agent's responses with those recorded of kubelet 1.33: code, headers and body.
 * `testdata/recorded-differences/agent-http.json` lists the requests that differ by reason; none may be added.
 *
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/agent-http.test.ts     removes requests that agree now
 */
import t from "tap";
import { type Exchange, readRecording, startRecordedAgent } from "./agent-http.ts";
import { RecordedDifferences } from "./recorded-differences.ts";

/** Equal requests have the same name with a number. */
function nameOf(exchange: Exchange, index: number, all: readonly Exchange[]): string {
  const base = baseName(exchange);
  const earlier = all.slice(0, index).filter((other) => baseName(other) === base).length;
  return earlier === 0 ? base : `${base} (${earlier + 1})`;
}

function baseName({ what, as, method = "GET", path }: Exchange): string {
  const origin = as ?? what.replace(/ \(.*| \d.*/, "");
  return `${origin}: ${method} ${path}`;
}

t.test("requests to the agent get the responses of kubelet 1.33", async (t) => {
  const recording = readRecording();
  if (recording === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  await using agent = await startRecordedAgent(recording);
  // The agent of this test serves the read-only port, unlike the recorded one.
  const exchanges = recording.exchanges.filter(({ error }) => error === undefined);
  const differences = new RecordedDifferences("agent-http");
  for (const [index, exchange] of exchanges.entries()) {
    differences.add(nameOf(exchange, index, exchanges), await agent.compare(exchange));
  }
  t.comment(`${exchanges.length - differences.count}/${exchanges.length} requests`);
  t.same(differences.unlisted(), []);
  t.same(differences.resolved(), [], "every listed request differs (SVC_RECORD=1 removes the others)");
});
