/**
 * Compares the agent's responses with those recorded of kubelet 1.33: code, headers and body.
 * `testdata/recorded-differences/agent-http.json` lists the requests that differ by reason; none may be added. Those
 * whose answer is the runtime's are compared in `src/acceptance/cluster/recorded-streams.test.ts`.
 *
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/agent-http.test.ts     removes requests that agree now
 */
import t from "tap";
import { nameExchanges, readRecording, startRecordedAgent } from "./agent-http.ts";
import { RecordedDifferences } from "./recorded-differences.ts";

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
  for (const [name, exchange] of nameExchanges(exchanges)) differences.add(name, await agent.compare(exchange));
  t.comment(`${exchanges.length - differences.count}/${exchanges.length} requests`);
  t.same(differences.unlisted(), []);
  t.same(differences.resolved(), [], "every listed request differs (SVC_RECORD=1 removes the others)");
});
